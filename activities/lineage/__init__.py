"""Activities that send OpenLineage events."""
