"""Activities for publishing: conflicts, merges and roll-backs."""
