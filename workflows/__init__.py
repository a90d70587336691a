"""Workflows: the deterministic order of steps, without clock, I/O or environment."""
