"""Workflows for landing zones and the files that arrive there."""
