"""Labels of the checks of a table, for use in commands: `not_null:order_id`, `row_count`, `accepted_range:x#2`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sluice.checks.base import Check
from sluice.errors import InvalidPipeline
from sluice.identifiers import suggestion

_FAULT = re.compile(r"(?P<label>.+?)(?:=(?P<share>[0-9.]+))?")


@dataclass(frozen=True)
class Fault:
    """A fault to plant in a share of the rows, or in as few rows as make the check fail."""

    index: int
    label: str
    share: float | None = None


def check_labels(checks: Sequence[Check]) -> list[str]:
    """Return the label of each check. Equal labels get numbers."""
    labels: list[str] = []
    for check in checks:
        own = getattr(check, "own_columns", None) or check.column_names
        named = getattr(check, "name", "") or ",".join(own)
        plain = f"{check.check}:{named}" if named else check.check
        earlier = sum(each == plain or each.startswith(f"{plain}#") for each in labels)
        labels.append(f"{plain}#{earlier + 1}" if earlier else plain)
    return labels


def parse_faults(written: Sequence[str], checks: Sequence[Check]) -> list[Fault]:
    """Parse the faults that a person requests as `CHECK` or `CHECK=SHARE`.

    Raises:
        InvalidPipeline: there is no such check, or the share is not above 0 and at most 1.
    """
    labels = check_labels(checks)
    faults = []
    for text in written:
        match = _FAULT.fullmatch(text)
        label = text if match is None or text in labels else match["label"]
        if label not in labels:
            listed = f": its checks are {', '.join(labels)}" if labels else ""
            raise InvalidPipeline(f"there is no check {label!r}{suggestion(label, labels) or listed}")
        share = None if match is None or text in labels else match["share"]
        faults.append(Fault(labels.index(label), label, _share(share, text)))
    return faults


def _share(written: str | None, text: str) -> float | None:
    if written is None:
        return None
    try:
        share = float(written)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise InvalidPipeline(f"{text!r}: the share of the rows is above 0 and at most 1, such as 0.02")
    return share
