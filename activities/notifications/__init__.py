"""Messages to people."""
