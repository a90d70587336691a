"""The audit step of a run."""
