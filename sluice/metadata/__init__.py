"""Statistics that the metadata of tables records."""
