"""Errors of YAML that cannot be read, each with its line."""

from typing import Any

from ruamel.yaml.constructor import ConstructorError, RoundTripConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import Node, ScalarNode
from ruamel.yaml.scanner import RoundTripScanner, ScannerError

UNREADABLE = (
    YAMLError,
    ValueError,
    ArithmeticError,
    TypeError,
    LookupError,
    AttributeError,
    NotImplementedError,
    RecursionError,
)
"""Errors that ruamel.yaml raises for text that it cannot read. Some, as for 2024-13-01 and `!!bool 5`, are Python's."""
_CORE_TAG = "tag:yaml.org,2002:"
_SHOWN = 60
_MAX_BITS = 4096
"""Maximum size of a whole number. Python converts no number of more than 4,300 digits to text."""


class LocatedScanner(RoundTripScanner):
    """A scanner whose errors name the line of an escape that is no character."""

    def scan_flow_scalar(self, style: Any) -> Any:
        """Scan a text in quotes.

        Raises:
            ScannerError: an escape such as `\\U00110000` is no character.
        """
        try:
            return super().scan_flow_scalar(style)
        except (ValueError, OverflowError) as error:
            problem = "an escape in this text is no character: characters end at \\U0010FFFF"
            raise ScannerError(None, None, problem, self.reader.get_mark()) from error


class LocatedConstructor(RoundTripConstructor):
    """A constructor whose errors name the line of a value that cannot be read."""

    def construct_object(self, node: Node, deep: bool = False) -> Any:
        """Construct the value of a node.

        Raises:
            ConstructorError: the value is not what its form or its tag says, a number has too many digits, or a
                mapping merges itself.
        """
        try:
            value = super().construct_object(node, deep)
        except YAMLError:
            raise
        except UNREADABLE as error:
            raise ConstructorError(None, None, _unreadable(node, error), node.start_mark) from error
        if isinstance(value, int) and value.bit_length() > _MAX_BITS:
            problem = f"a whole number has more than {_MAX_BITS:,} bits. Put a text into quotes"
            raise ConstructorError(None, None, problem, node.start_mark)
        return value


def shown_tag(tag: object) -> str:
    """Return a tag as people write it."""
    return str(tag).replace(_CORE_TAG, "!!")[:_SHOWN]


def _unreadable(node: Node, error: Exception) -> str:
    """Return the reason why the value of a node cannot be read."""
    if not isinstance(node, ScalarNode):
        return "a mapping merges itself by `<<`, or contains a value that cannot be read: write its keys out"
    is_reason = isinstance(error, ValueError | ArithmeticError)
    why = str(error) if is_reason else f"it is not a value of the tag {shown_tag(node.tag)!r}"
    return f"{node.value[:_SHOWN]!r} cannot be read: {why}. Put a text into quotes"
