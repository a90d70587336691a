"""Describe the types of columns that Sluice guesses before a run, for `check`, `plan` and `backfill --dry-run`."""

from sluice.contracts.guessed_types import GuessedTypes, TypePreview
from sluice.pipeline.model import Pipeline
from sluice.presentation.guessed_types import describe_types


def describe_preview(pipeline: Pipeline, preview: TypePreview) -> str:
    """Describe the guessed types in a sentence; empty if the types are stated, or not known before the run."""
    if not preview.columns:
        return ""
    used = "for the transform" if pipeline.write.transform else "used if the table is new"
    rows = "from all rows" if preview.is_whole else "from the first rows (the run reads all)"
    columns = list(preview.columns)
    return f"Types guessed {rows}, {used}: {describe_types(GuessedTypes(columns=columns, total=len(columns)))}."
