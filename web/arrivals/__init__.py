"""Views of landing zones."""
