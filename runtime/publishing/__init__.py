"""Publishing: conflicts, merges and roll-backs."""
