"""The publish step of a run, and the merge queue."""
