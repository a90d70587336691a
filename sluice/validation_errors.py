"""The errors of Pydantic in plain words, and those in a message of Pydantic without the values that it quotes."""

import re
from collections.abc import Mapping
from typing import Any

_ERROR = re.compile(r"^(?P<where>\S.*)\n  (?P<why>.+?)(?: \[type=.*)?$", re.MULTILINE)
"""One error of Pydantic's message: its location, and the reason on the next line."""
_MOST_ERRORS = 5
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "list": "a list",
}
"""Plain names of the kinds of values that an error may require, by the beginning of the error's type."""
_ENDS = ("_type", "_parsing", "_from_float")


def plain_message(error: Mapping[str, Any]) -> str:
    """Return the message of one error, as `ValidationError.errors()` lists it, in plain words."""
    kind = str(error["type"])
    for end in _ENDS:
        if kind.endswith(end) and (wanted := _KINDS.get(kind.removesuffix(end))):
            return f"input should be {wanted}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return message[0].lower() + message[1:] if message.startswith("Input should") else message


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
