"""Activities for backfills."""
