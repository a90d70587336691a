"""The checks, in one registry. To add one: write its class, and name it in `AnyCheck`."""

from collections.abc import Sequence
from typing import Annotated, Any, get_args

from pydantic import Field

from sluice.checks.base import Check
from sluice.checks.counts import RowCount
from sluice.checks.keys import Unique, UniqueCombinationOfColumns
from sluice.checks.nulls import NotNull, NotNullProportion
from sluice.checks.query import Sql
from sluice.checks.shape import Schema
from sluice.checks.values import AcceptedRange, AcceptedValues
from sluice.errors import InvalidPipeline
from sluice.names import suggestion

_Union = (
    NotNull
    | NotNullProportion
    | RowCount
    | AcceptedValues
    | AcceptedRange
    | Unique
    | UniqueCombinationOfColumns
    | Schema
    | Sql
)
AnyCheck = Annotated[_Union, Field(discriminator="check")]

REGISTRY: dict[str, type[Check]] = {cls.model_fields["check"].default: cls for cls in get_args(_Union)}
"""Every check by its name."""

_ALIASES: dict[str, tuple[str, dict[str, str]]] = {
    alias: (name, dict(renamed)) for name, cls in REGISTRY.items() for alias, renamed in cls.aliases.items()
}


def expand(written: object) -> Sequence[dict[str, Any]]:
    """Turn one check as a person wrote it into the fields of the checks that it stands for.

    Args:
        written: an item of the YAML list, such as `{"not_null": ["a", "b"]}`.

    Raises:
        InvalidPipeline: it is not of that form, or there is no such check.
    """
    if not isinstance(written, dict) or len(written) != 1:
        raise InvalidPipeline("a check is written as one name and its parameters: `- not_null: [a, b]`")
    ((written_name, value),) = written.items()
    name, renamed = _ALIASES.get(str(written_name), (str(written_name), {}))
    cls = REGISTRY.get(name)
    if cls is None:
        known = [*REGISTRY, *_ALIASES]
        raise InvalidPipeline(f"there is no check {name!r}{suggestion(name, known)}")
    parameters = value if isinstance(value, dict) else {cls.shorthand: value}
    parameters = {renamed.get(str(key), str(key)): each for key, each in parameters.items()}
    return [{**one, "check": name} for one in cls.expand(parameters)]
