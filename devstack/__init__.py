"""Temporal, Nessie and what else a laptop needs, started and stopped by one command."""
