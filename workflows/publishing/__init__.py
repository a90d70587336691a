"""The publish step of a run, and the workflows that order merges."""
