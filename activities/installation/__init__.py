"""Activities that check the health of an installation."""
