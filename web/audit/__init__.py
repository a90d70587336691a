"""Verdicts on the page."""
