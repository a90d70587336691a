"""Decisions on the page."""
