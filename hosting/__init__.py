"""The activities that the worker hosts. Only `worker.py` imports this package."""
