"""The error of the local stack and of its set-up."""


class StackError(Exception):
    """Raised when the local stack cannot be set up, started or stopped; the message says what to do."""
