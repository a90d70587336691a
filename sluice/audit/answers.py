"""Combine the answers of a scan with the metadata of the files that were not read into verdicts."""

from collections.abc import Mapping

from sluice.audit.bad_rows_query import bad_rows_query
from sluice.audit.scan_groups import ScanGroup
from sluice.checks.base import Evaluation
from sluice.checks.results import AnswerSource, check_result, error_result
from sluice.checks.rows import RowCheck
from sluice.checks.verdicts import AnsweredBy, CheckResult
from sluice.contracts.spark_jobs import ScanAnswer


def check_key(table: str, index: int) -> str:
    """Return the key of a check in the answers of a scan."""
    return f"{table}#{index}"


def verdicts(group: ScanGroup, answers: Mapping[str, ScanAnswer], engine: AnsweredBy) -> list[CheckResult]:
    """Return verdicts on the checks of a group that a scan answered. An answer with an error becomes `error`."""
    results = []
    for index, check in group.checks.items():
        answer = answers.get(check_key(group.table.name, index))
        if answer is None:
            continue
        if answer.error:
            results.append(error_result(group.table.name, index, check, answer.error))
            continue
        files = len(group.files) + len(group.files_beside(index))
        try:
            evaluated = evaluation(group, index, answer)
        except ValueError as error:  # a date or a time outside the years 1 to 9999, which has no order in Python
            results.append(error_result(group.table.name, index, check, f"it has no answer: {error}"))
            continue
        query = bad_rows_query(group.table.name, check, group.table.statistics.types, evaluated)
        source = AnswerSource(engine, answer.sample, files, group.bytes_of(index), query)
        results.append(check_result(group.table.name, index, check, evaluated, source))
    return results


def evaluation(group: ScanGroup, index: int, answer: ScanAnswer) -> Evaluation:
    """Evaluate a check by the metrics of a scan and the proven counts of the files that it did not read."""
    check, read = group.checks[index], {file.path for file in group.files}
    statistics = group.table.statistics
    proven = [file for file in statistics.files(group.scope) if file.path not in read]
    metrics = dict(answer.metrics)
    if "rows" in metrics:
        metrics["rows"] = int(metrics["rows"]) + sum(file.rows for file in proven)
    if isinstance(check, RowCheck):
        failed = sum(check.known_in(file, statistics.types) or 0 for file in proven)
        metrics["failed"] = int(metrics["failed"]) + failed
    return check.evaluate(metrics, statistics)
