"""Activities for the steps of a run."""
