"""Decide how two versions of a table are compared, and what of the result is shown."""
