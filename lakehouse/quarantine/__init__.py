"""Quarantined branches and the rows that their releases publish."""
