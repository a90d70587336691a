"""Views of runs."""
