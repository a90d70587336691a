"""Views of quarantines."""
