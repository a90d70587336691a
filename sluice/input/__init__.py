"""Selection of a run's source files: the input manifest, and the loaded files that commits record."""
