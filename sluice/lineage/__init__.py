"""OpenLineage: what Sluice says of its runs to those who collect lineage (ADR 37)."""
