"""The approval and waiver steps of a run."""
