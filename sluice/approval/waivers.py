"""Waivers: the failed checks that people may waive, their names in commands, and the end of a waiver."""

import re
import shlex
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from sluice.base_model import WireMessage
from sluice.command_line import COMMAND
from sluice.errors import InvalidPipeline
from sluice.times import parse_time

MAX_DAYS = 90
"""Maximum duration of a waiver, in days. People review each at least once a quarter, and the search of main's history
for waivers in force has an end."""
MAX_WAIVED = 20
"""Maximum number of waived checks of a run. The merge commit contains each with its reason, and so do all reports
and messages. They also apply to an audit with more failures."""
REASON_LIMIT = 500
"""Maximum length of the reason of a waiver, in characters, since it is in commits, reports and messages."""
GRACE = timedelta(hours=1)
"""Time after the end of a waiver during which a run may still merge, if the waiver had not ended at the audit. A run
should not fail because it waited for a slow catalog or another worker. It does fail after a longer wait, such as days
for an approval."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"[0-9:.TZ +-]{10,40}", re.ASCII)
"""The characters of a time. No others are allowed: the text appears in messages, and stays in main's history."""
_SHOWN_DIGITS = 8


class Waiver(WireMessage):
    """A person's waiver of one failed check, as part of a decision and of its signed fields."""

    table: str = ""
    check: str = ""
    """The title of the check in reports, such as `unique(order_id)`."""
    fingerprint: str = ""
    """The fingerprint of the check and its pipeline. It and the table may be empty where decisions are not signed."""
    reason: str = ""
    until: str = ""
    """End of the waiver, in ISO 8601 with an offset. A date alone means the end of that day, in UTC."""


class WaivableCheck(WireMessage):
    """A failed check of an audit that may be waived."""

    table: str
    index: int
    """Its position among the table's checks in the pipeline file, from 0."""
    check: str
    """Its title in reports."""
    fingerprint: str

    @property
    def key(self) -> tuple[str, str]:
        """The object of a waiver: the table, and the fingerprint of the check's definition."""
        return self.table, self.fingerprint


class WaivedCheck(WaivableCheck):
    """A failed check that is waived, with its waiver."""

    by: list[str]
    """All people who waived it."""
    reason: str
    until: str
    """End of the waiver, in ISO 8601: the earliest end that any of these people named."""
    run_id: str
    """The first run that published under the waiver."""
    workflow_id: str = ""


def waivable(checks: Sequence[WaivableCheck]) -> list[WaivableCheck]:
    """Return checks without the fields of their waivers."""
    fields = set(WaivableCheck.model_fields)
    return [WaivableCheck.model_validate(check.model_dump(include=fields)) for check in checks]


def parse_until(text: str) -> datetime:
    """Return the end of a waiver. A date means the end of that day, in UTC.

    Raises:
        ValueError: the text is neither a date nor a time with an offset.
    """
    written = text.strip()
    try:
        if _DATE.fullmatch(written):
            return datetime.fromisoformat(written).replace(hour=23, minute=59, second=59, tzinfo=timezone.utc)
        if _TIME.fullmatch(written) and (until := parse_time(written)).tzinfo is not None:
            return until.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        pass
    raise ValueError(
        f"{text[:40]!r} is not a valid end of a waiver: write a date such as 2026-12-01 (until the end of that day, "
        "UTC), or a time with its offset such as 2026-12-01T12:00+00:00"
    )


def until_problem(text: str, now: datetime) -> str | None:
    """Return the reason why a waiver may not have this end, or None if it may."""
    if not text.strip():
        return "a waiver needs an end: --until DATE"
    try:
        until = parse_until(text)
    except ValueError as error:
        return str(error)
    if until <= now:
        return f"a waiver has to end in the future: {text.strip()} is in the past"
    latest = now.astimezone(timezone.utc).date() + timedelta(days=MAX_DAYS)
    if until.date() > latest:
        return f"a waiver may last {MAX_DAYS} days, until {latest} at the latest: {text.strip()} is later"
    return None


def reason_problem(reason: str) -> str | None:
    """Return a message if a text cannot be the reason of a waiver, or None. A reason is one readable line."""
    if not reason.strip():
        return "a waiver needs a reason: --reason …"
    if len(reason) > REASON_LIMIT:
        return f"the reason of a waiver has {len(reason)} characters: the limit is {REASON_LIMIT}"
    if not reason.isprintable():
        return "the reason of a waiver must be one line, without control or invisible characters"
    return None


def waiver_names(checks: Sequence[WaivableCheck]) -> list[str]:
    """Return a name for each definition of a check, as people write it. The names differ from each other."""
    distinct = {check.key: check for check in checks}.values()
    names = []
    for check in distinct:
        forms = _forms(check)
        names.append(next((form for form in forms if sum(form in _forms(each) for each in distinct) == 1), forms[-1]))
    return names


def choose_checks(names: Sequence[str], checks: Sequence[WaivableCheck]) -> list[WaivableCheck]:
    """Return the checks that a person named.

    Raises:
        InvalidPipeline: a name belongs to none of the checks, or to several.
    """
    distinct = {check.key: check for check in checks}
    chosen = []
    for name in names:
        matching = [check for check in distinct.values() if " ".join(name.split()) in _forms(check)]
        if len(matching) != 1:
            why = "is the name of several failed checks" if matching else "is not a failed check that can be waived"
            listed = ", ".join(waiver_names(checks))
            raise InvalidPipeline(f"--waive {name[:200]!r} {why}. Checks to waive: {listed or 'none'}")
        chosen.append(matching[0])
    return chosen


def waive_command(run: str, checks: Sequence[WaivableCheck], command: str = COMMAND) -> str:
    """Return the command that waives these checks, for a person to complete."""
    return f"{command} approve {run} {waive_options(checks)} --reason ... --until DATE"


def waive_options(checks: Sequence[WaivableCheck]) -> str:
    """Return the options of `approve` that name these checks, quoted for a shell."""
    return " ".join(f"--waive {shlex.quote(name)}" for name in waiver_names(checks))


def describe_checks(checks: Sequence[WaivableCheck]) -> str:
    """Return the titles of checks with their tables: `unique(id) of t.x, not_null(id) of t.y`."""
    return ", ".join(dict.fromkeys(f"{check.check} of {check.table}" for check in checks))


def _forms(check: WaivableCheck) -> tuple[str, str, str]:
    """Return the names that people may use for a check, the shortest first."""
    title = " ".join(check.check.split())
    with_table = f"{check.table}: {title}"
    return title, with_table, f"{with_table}@{check.fingerprint[:_SHOWN_DIGITS]}"
