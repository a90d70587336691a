"""What can keep the local stack from starting."""


class StackError(Exception):
    """Raised when the local stack cannot be set up, started or stopped; the message says what to do."""
