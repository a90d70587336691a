"""Quarantined branches and rows."""
