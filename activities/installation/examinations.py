"""Looking at the parts of an installation one by one: one that fails stops no other."""

from collections.abc import Callable, Mapping

from sluice.contracts.examination import Examination, Finding, failed
from sluice.errors import SluiceError


class NeedsRemedy(Exception):
    """Raised when a part of an installation is not well."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy


Look = Callable[[], Finding | list[Finding]]
"""Looks at one part. Whatever it raises is what is wrong with that part."""


def examine(looks: Mapping[str, Look]) -> Examination:
    """Look at every part, by its name; an error is a finding that failed."""
    findings: list[Finding] = []
    for part, look in looks.items():
        try:
            seen = look()
        except NeedsRemedy as problem:
            seen = failed(part, str(problem), problem.remedy)
        except SluiceError as error:  # its message says what to do
            seen = failed(part, str(error))
        except Exception as error:
            seen = failed(part, f"{type(error).__name__}: {error}", "see the log of the worker")
        findings += seen if isinstance(seen, list) else [seen]
    return Examination(findings=findings)
