"""Processes of jobs: the guard that ends them when their worker ends, their output, and the fork server."""
