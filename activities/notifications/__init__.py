"""Activities that send messages to people."""
