"""What the worker hosts. Only `worker.py` imports it."""
