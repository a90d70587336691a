"""Describe guessed types of columns, for `check`, `plan`, `backfill --dry-run` and reports."""

from sluice.contracts.guessed_types import GuessedColumn, GuessedTypes, TypePreview
from sluice.pipeline.model import Pipeline

_SHOWN = 20


def describe_preview(pipeline: Pipeline, preview: TypePreview) -> str:
    """Describe the guessed types in a sentence; empty if the types are stated, or not known before the run."""
    if not preview.columns:
        return ""
    used = "for the transform" if pipeline.write.transform else "used if the table is new"
    rows = "from all rows" if preview.is_whole else "from the first rows (the run reads all)"
    columns = list(preview.columns)
    return f"Types guessed {rows}, {used}: {describe_types(GuessedTypes(columns=columns, total=len(columns)))}."


def describe_types(types: GuessedTypes) -> str:
    """Describe the types in a sentence: `id INT, seat STRING ('12D' in a.csv); no value yet: note`."""
    typed = [each for each in types.columns if each.type]
    parts = [", ".join(_describe(each) for each in typed[:_SHOWN])] if typed else []
    untyped = [each.name for each in types.columns if not each.type]
    if untyped:
        shown = ", ".join(untyped[:_SHOWN]) + (f" and {len(untyped) - _SHOWN:,} more" if len(untyped) > _SHOWN else "")
        parts.append(f"no value yet, so left out: {shown}")
    if more := types.total - len(untyped) - len(typed[:_SHOWN]):
        parts.append(f"and {more:,} more columns")
    return "; ".join(parts)


def _describe(column: GuessedColumn) -> str:
    where = f" in {column.where}" if column.where else ""
    value = f"{column.value!r}{where}" if column.value else f"a text{where}" if where else ""
    return f"{column.name} {column.type}" + (f" ({value})" if value else "")
