"""Landing zones: list arrived files, record their status, and group them into batches to load."""
