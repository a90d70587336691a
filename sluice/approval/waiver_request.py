"""Requests of a person to waive failed checks, from the command line or the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from sluice.approval.waivers import (
    WaivableCheck,
    Waiver,
    choose_checks,
    parse_until,
    reason_problem,
    until_problem,
)
from sluice.approval.waiving import secret_problem
from sluice.errors import InvalidPipeline


@dataclass(frozen=True)
class WaiverRequest:
    """A request to waive checks until a date."""

    names: Sequence[str] = ()
    until: str = ""

    def check(self, reason: str) -> None:
        """Check that the request says what a waiver needs, as far as that is possible without a server.

        Raises:
            InvalidPipeline: the reason or the date is missing or wrong, or a date is given without a check.
        """
        if not self.names:
            if self.until:
                raise InvalidPipeline("--until is the end of a waiver: name the check by --waive")
            return
        problem = reason_problem(reason) or until_problem(self.until, datetime.now(timezone.utc))
        problem = problem or secret_problem([Waiver(reason=reason)])
        if problem:
            raise InvalidPipeline(problem)


NO_WAIVER = WaiverRequest()


def make_waivers(request: WaiverRequest, to_waive: Sequence[WaivableCheck], reason: str) -> list[Waiver]:
    """Return the waivers of a request for checks that wait for one.

    Raises:
        InvalidPipeline: a name matches none of these checks, or several.
    """
    return [
        Waiver(
            table=check.table,
            check=check.check,
            fingerprint=check.fingerprint,
            reason=reason.strip(),
            until=parse_until(request.until).isoformat(),
        )
        for check in choose_checks(request.names, to_waive)
    ]
