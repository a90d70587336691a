"""Input files, pipelines and programs that tests run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

BYPASS = """\
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.sql("INSERT INTO nessie.t.`{table}@main` VALUES (666)")
spark.sql("INSERT INTO nessie.t.{table} VALUES (2)")
"""
"""A program that changes main directly, unnoticed by its run. The placeholder `table` is to be filled in."""


def csv_file(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows as a CSV file with a header; None is an empty field."""
    names = list(rows[0])
    lines = [",".join(names), *(",".join("" if row[n] is None else str(row[n]) for n in names) for row in rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def pipeline(name: str, source: Path | str, checks: str = "[row_count: {min: 1}]", more: str = "") -> str:
    """Return a small pipeline that appends files to the table `t.<name>`."""
    table = f"t.{name.replace('-', '_')}"
    return f"""\
name: {name}
write:
  source: {{path: "{source}"}}
tables:
  {table}:
    checks: {checks}
{more}
"""
