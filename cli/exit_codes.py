"""Exit codes of commands that do not end with a run, and the message of an expected error."""

import json
import sys

WRONG_USE, FAILED, UNREACHABLE, DETACHED = 2, 6, 7, 130


def print_error(error: Exception, as_json: bool, code: int) -> int:
    """Print an error as one message, and with --json also as an object. Return the exit code."""
    print(f"sluice: {error}", file=sys.stderr)
    if as_json:
        print(json.dumps({"outcome": None, "error": str(error), "exit_code": code}))
    return code
