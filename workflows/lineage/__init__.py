"""OpenLineage events of runs."""
