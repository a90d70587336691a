"""Backfills."""
