"""Operations on claims: composition, group privacy, subsampling."""
