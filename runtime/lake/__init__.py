"""Queries of tables."""
