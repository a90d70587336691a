"""Landing zones: which files are there, which are known, and the batches that they are loaded in."""
