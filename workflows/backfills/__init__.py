"""Workflows for backfills."""
