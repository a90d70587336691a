"""OpenLineage events."""
