"""Views of backfills."""
