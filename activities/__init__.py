"""Activities, one short file each. Every activity is idempotent and states which of its errors are retryable."""
