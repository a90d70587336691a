"""Describe registrations in reports, and failed ones on Slack."""

from collections.abc import Sequence

from sluice.contracts.registration import Registration

_LONGEST = 500
_SHOWN = 10


def registration_lines(registrations: Sequence[Registration]) -> list[str]:
    """Return a line for each registration, failed ones first. After ten, return the number of the others."""
    order = ("failed", "pending", "done")
    lines = [_line(each) for each in sorted(registrations, key=lambda each: order.index(each.state))]
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], f"and {more} more"] if more > 0 else lines


def _line(registration: Registration) -> str:
    what = f"{registration.target} {registration.table}".rstrip()
    why = " ".join(registration.reason.split())[:_LONGEST]
    return f"{what}: {registration.state}" + (f", {why}" if why else "")
