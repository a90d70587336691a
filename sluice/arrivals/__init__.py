"""Files that arrive in landing zones, and the batches in which they are loaded."""
