"""Landing zones and the files that arrive."""
