"""Pipelines on the page."""
