"""The installation and its health."""
