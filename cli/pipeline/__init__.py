"""Pipeline files."""
