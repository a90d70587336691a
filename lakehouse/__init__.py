"""Nessie, Iceberg and files, behind small interfaces that speak the domain's words."""
