"""Workflows for quarantined branches."""
