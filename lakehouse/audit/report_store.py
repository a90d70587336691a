"""The report store: whole reports and verdicts as JSON in the lake. Copies in Temporal are truncated."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.io import FileIO, load_file_io

from sluice.checks.verdicts import CheckResult
from sluice.contracts.references import RunRef
from sluice.contracts.run import RunResult

_FOLDER = "sluice-audits"
_SPARK_FOLDER = "sluice-scans"
"""Folder of the Spark worker. If this worker has its own user, its jobs can write here but not into the reports."""
_OF_SPARK = "spark"
_PARTS = ("metadata", "files", _OF_SPARK)


@dataclass(frozen=True)
class ReportStore:
    """Reader and writer of reports.

    Requires the lake's location, and Iceberg's properties for file access.
    """

    lake: str
    io: Mapping[str, str]
    _file_io: list[FileIO] = field(default_factory=list, repr=False)

    def write_verdicts(self, run_ref: RunRef, head: str, part: str, checks: Sequence[CheckResult]) -> None:
        """Write the verdicts of one step of an audit. A repeated step replaces its own."""
        if checks:
            self._write(self._verdicts_path(run_ref, head, part), [check.model_dump(mode="json") for check in checks])

    def read_verdicts(self, run_ref: RunRef, head: str) -> list[CheckResult]:
        """Return all verdicts on a branch at a hash, untruncated."""
        verdicts: list[CheckResult] = []
        for part in _PARTS:
            try:
                with self._io.new_input(self._verdicts_path(run_ref, head, part)).open() as file:
                    verdicts += [CheckResult.model_validate(each) for each in json.loads(file.read())]
            except FileNotFoundError:
                continue
        return verdicts

    def write_report(self, run_ref: RunRef, report: Mapping[str, Any]) -> str:
        """Write the whole report of an ended run; return its path."""
        path = f"{self._folder(run_ref)}/report.json"
        self._write(path, report)
        return path

    def read_report(self, run_ref: RunRef) -> RunResult | None:
        """Return the whole report of an ended run, or None if there is none."""
        try:
            with self._io.new_input(f"{self._folder(run_ref)}/report.json").open() as file:
                return RunResult.model_validate_json(file.read())
        except FileNotFoundError:
            return None

    @property
    def _io(self) -> FileIO:
        if not self._file_io:
            self._file_io.append(load_file_io(dict(self.io), self.lake))
        return self._file_io[0]

    def _folder(self, run_ref: RunRef, top: str = _FOLDER) -> str:
        return f"{self.lake.rstrip('/')}/{top}/{run_ref.pipeline}/{run_ref.run_id}"

    def _verdicts_path(self, run_ref: RunRef, head: str, part: str) -> str:
        folder = self._folder(run_ref, _SPARK_FOLDER if part == _OF_SPARK else _FOLDER)
        return f"{folder}/a{run_ref.attempt}-{head[:16]}-{part}.json"

    def _write(self, path: str, content: Any) -> None:
        with self._io.new_output(path).create(overwrite=True) as file:
            file.write(json.dumps(content, ensure_ascii=False, indent=1).encode())
