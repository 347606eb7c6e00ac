"""What is made of claims: composition, groups, subsampling."""
