"""Activities that answer queries about the lake."""
