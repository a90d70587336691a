"""Activities that register publications with other catalogs."""
