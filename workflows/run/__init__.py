"""The steps of a run, and the workflow that starts runs."""
