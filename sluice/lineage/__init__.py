"""OpenLineage events about runs, for tools that collect lineage (ADR 36)."""
