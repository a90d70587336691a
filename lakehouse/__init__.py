"""The catalog, Iceberg and files, behind small interfaces that use the domain's terms."""
