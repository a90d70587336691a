"""Run the checks of an installation one after the other. A failed check does not stop the rest."""

from collections.abc import Callable, Mapping

from sluice.contracts.examination import Examination, Finding, failed
from sluice.errors import SluiceError


class NeedsRemedy(Exception):
    """Raised when a part of an installation has a problem, with the remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy


Look = Callable[[], Finding | list[Finding]]
"""A check of one part. An error that it raises is the problem of that part."""


def examine(looks: Mapping[str, Look]) -> Examination:
    """Run the check of every part, by its name. An error becomes a failed finding."""
    findings: list[Finding] = []
    for part, look in looks.items():
        try:
            seen = look()
        except NeedsRemedy as problem:
            seen = failed(part, str(problem), problem.remedy)
        except SluiceError as error:  # its message includes the remedy
            seen = failed(part, str(error))
        except Exception as error:
            seen = failed(part, f"{type(error).__name__}: {error}", "see the log of the worker")
        findings += seen if isinstance(seen, list) else [seen]
    return Examination(findings=findings)
