"""Statistics from the metadata of tables."""
