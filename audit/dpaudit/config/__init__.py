"""Reads audits from YAML files, and checks them completely before any trial runs."""
