"""Processes of jobs: the guard that ends them with their worker, their output, and the fork server."""
