"""Sample rows of a pipeline's source files, whose values generated rows use."""

import csv
import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from lakehouse.source_files import find_files, first_records, is_remote
from sluice.errors import InvalidInput
from sluice.pipeline.source import Source

_FILES, _ROWS = 3, 500


def sample_source(source: Source) -> list[Mapping[str, Any]]:
    """Return the first rows of the first local files of a source; empty if there are none, or a file is broken."""
    try:
        files = [file.path for file in find_files(source)[:_FILES]]
        return [row for path in files if not is_remote(path) for row in _rows(path, source)]
    except (InvalidInput, csv.Error, ValueError, OSError):  # a run reports the problem
        return []


def _rows(path: str, source: Source) -> Sequence[Mapping[str, Any]]:
    format = source.reader_format()
    if format == "csv":
        return first_records(path, {name.lower(): value for name, value in source.options.items()}, _ROWS)
    if format == "parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415  # half a second, which other formats do not need

        batches = pq.ParquetFile(path).iter_batches(batch_size=_ROWS)
        return next((batch.to_pylist() for batch in batches), [])
    if format == "json" and Path(path).suffix in (".json", ".jsonl", ".ndjson"):
        with Path(path).open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in islice(lines, _ROWS) if line.strip()]
        return [row for row in rows if isinstance(row, dict)]
    return []
