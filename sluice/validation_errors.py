"""The errors in a message of Pydantic, without the values that it quotes."""

import re

_ERROR = re.compile(r"^(?P<where>\S.*)\n  (?P<why>.+?)(?: \[type=.*)?$", re.MULTILINE)
"""One error of Pydantic's message: its location, and the reason on the next line."""
_MOST_ERRORS = 5


def describe_errors(message: str) -> str:
    """Return the errors of a message of Pydantic in one line, each with its location.

    The values that Pydantic appends are left out.
    """
    errors = [
        f"{each['where'].replace('.[key]', '')}: {each['why'].removeprefix('Value error, ')}"
        for each in _ERROR.finditer(message)
    ]
    more = [f"{len(errors) - _MOST_ERRORS} more"] if len(errors) > _MOST_ERRORS else []
    return "; ".join([*errors[:_MOST_ERRORS], *more]) or message.partition("\n")[0]
