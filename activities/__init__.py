"""One short file for each act on the outside world. Each is idempotent, and says which errors may pass."""
