"""Backfills: many runs of one pipeline, one for each partition."""
