"""One short file for each activity. Each is idempotent, and says which errors are retryable."""
