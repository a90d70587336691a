"""Run the checks of an installation one after the other. A failed check does not stop the rest."""

from collections.abc import Callable, Mapping

from sluice.contracts.examination import Examination, Finding, failed
from sluice.errors import SluiceError


class NeedsRemedy(Exception):
    """Raised when a part of an installation has a problem, with the remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy


Check = Callable[[], Finding | list[Finding]]
"""A check of one part. An error that it raises is the problem of that part."""


def examine(checks: Mapping[str, Check]) -> Examination:
    """Run the check of every part, by its name. An error becomes a failed finding."""
    findings: list[Finding] = []
    for part, check in checks.items():
        try:
            result = check()
        except NeedsRemedy as problem:
            result = failed(part, str(problem), problem.remedy)
        except SluiceError as error:  # its message includes the remedy
            result = failed(part, str(error))
        except Exception as error:
            result = failed(part, f"{type(error).__name__}: {error}", "see the log of the worker")
        findings += result if isinstance(result, list) else [result]
    return Examination(findings=findings)
