"""Registration of publications with other catalogs."""
