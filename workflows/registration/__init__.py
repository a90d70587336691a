"""Workflows that register publications with other catalogs."""
