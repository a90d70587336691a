"""The registry of all checks.

To add a check, write its class in one of the modules of this package and name it in `_Union` below; `make docs` adds
it to `docs/checks.md`. The interface of a check is `Check` in `base.py`: `prove` answers from metadata alone,
`build_query` says what to compute from the rows, and `evaluate` turns that into a result. Most checks derive from
`RowCheck` in `rows.py`, which needs only `bad`, the condition that is true for a bad row.
"""

from collections.abc import Sequence
from typing import Annotated, Any, get_args

from pydantic import Field

from sluice.checks import (
    aggregates,
    change_scope,
    counts,
    extremes,
    nulls,
    query,
    references,
    schema,
    strings,
    time_series,
    uniqueness,
    values,
)
from sluice.checks.base import Check
from sluice.errors import InvalidPipeline
from sluice.identifiers import suggestion

_Union = (
    nulls.NotNull
    | nulls.NotNullProportion
    | nulls.AtLeastOne
    | counts.RowCount
    | counts.EqualRowCount
    | counts.Volume
    | values.AcceptedValues
    | values.NotAcceptedValues
    | values.AcceptedRange
    | values.NotNan
    | strings.NotEmptyString
    | strings.MatchRegex
    | strings.NotMatchRegex
    | strings.MatchLike
    | strings.NotMatchLike
    | strings.ValidFormat
    | strings.StringLength
    | uniqueness.Unique
    | uniqueness.UniqueCombinationOfColumns
    | uniqueness.NotConstant
    | uniqueness.DistinctCount
    | uniqueness.DistinctRatio
    | extremes.MinInRange
    | extremes.MaxInRange
    | aggregates.MeanInRange
    | aggregates.SumInRange
    | aggregates.StddevInRange
    | aggregates.QuantileInRange
    | references.CompareColumns
    | references.Relationships
    | time_series.Freshness
    | time_series.RowPerDatePart
    | time_series.SequentialValues
    | schema.Schema
    | schema.ColumnType
    | schema.ColumnExists
    | schema.ColumnNames
    | schema.ColumnAbsent
    | schema.ColumnCount
    | schema.SchemaDrift
    | change_scope.AppendOnly
    | change_scope.DeletedRows
    | change_scope.ChangedPartitions
    | change_scope.ChangedTables
    | change_scope.AddedFiles
    | change_scope.AddedBytes
    | change_scope.PartitioningUnchanged
    | change_scope.SortOrderUnchanged
    | query.ExpressionIsTrue
    | query.Sql
)
AnyCheck = Annotated[_Union, Field(discriminator="check")]

REGISTRY: dict[str, type[Check]] = {cls.model_fields["check"].default: cls for cls in get_args(_Union)}
"""Every check by its name."""

_CONSTANT = "+"
"""Prefix of a parameter whose value the alias itself sets."""
_ALIASES: dict[str, tuple[str, dict[str, str]]] = {
    alias: (name, dict(renamed)) for name, cls in REGISTRY.items() for alias, renamed in cls.aliases.items()
}


def expand(written: object) -> Sequence[dict[str, Any]]:
    """Return the fields of the checks that one item of a pipeline file stands for.

    Args:
        written: an item of the YAML list, such as `{"not_null": ["a", "b"]}`, or a bare name such as `"append_only"`.

    Raises:
        InvalidPipeline: it does not have that form, or there is no such check.
    """
    if isinstance(written, str):
        written = {written: {}}
    if not isinstance(written, dict) or len(written) != 1:
        raise InvalidPipeline("a check is written as one name and its parameters: `- not_null: [a, b]`")
    ((written_name, value),) = written.items()
    name, renamed = _ALIASES.get(str(written_name), (str(written_name), {}))
    cls = REGISTRY.get(name)
    if cls is None:
        known = [*REGISTRY, *_ALIASES]
        raise InvalidPipeline(f"there is no check {name!r}{suggestion(name, known)}: `checks` lists all")
    if value is None:
        value = {}
    parameters = value if isinstance(value, dict) else {cls.shorthand: value}
    keys = [renamed.get(str(key), str(key)) for key in parameters]
    if repeated := next((key for key in keys if keys.count(key) > 1), None):
        raise InvalidPipeline(f"{repeated!r} is given twice, once by another name")
    parameters = dict(zip(keys, parameters.values(), strict=True))
    constants = {key[1:]: each for key, each in renamed.items() if key.startswith(_CONSTANT)}
    return [{**one, "check": name} for one in cls.expand({**constants, **parameters})]
