"""Waivers: which failed checks people may waive, how a person names them, and until when a waiver holds."""

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone

from pydantic import ConfigDict

from sluice.base_model import Model
from sluice.checks.base import Check
from sluice.checks.verdicts import CheckResult, check_title
from sluice.command_line import COMMAND
from sluice.errors import InvalidPipeline
from sluice.pipeline.table import Table
from sluice.times import parse_time

MAX_DAYS = 90
"""So many days ahead a waiver may end. Each is looked at again once a quarter at least, and the search of main's
history for waivers in force has an end."""
MAX_WAIVED = 20
"""So many checks of a run may be waived: each is in the merge commit with its reason, and in every report and message.
An audit that fails with more than that is no exception."""
REASON_LIMIT = 500
"""So many characters the reason of a waiver may have, for the same cause."""
GRACE = timedelta(hours=1)
"""So long after its end a waiver that held at the audit still lets the run merge. The wait for a slow catalog, or for
another worker, is no reason to fail a run; the wait for an approval may last for days, and is."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"[0-9:.TZ +-]{10,40}", re.ASCII)
"""The characters of a time: what a person sends stands in messages, and stays in main's history."""
_SHOWN_DIGITS = 8


class Waiver(Model):
    """A person's waiver of one failed check, as part of a decision and of what is signed of it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    table: str = ""
    check: str = ""
    """The title of the check, as reports show it: `unique(order_id)`."""
    fingerprint: str = ""
    """The fingerprint of the check and its pipeline. It and the table may be empty where decisions are not signed."""
    reason: str = ""
    until: str = ""
    """When the waiver ends, in ISO 8601 with an offset; a date alone means the end of that day, in UTC."""


class WaivableCheck(Model):
    """A failed check of an audit that may be waived."""

    table: str
    index: int
    """Its position among the table's checks in the pipeline file, from 0."""
    check: str
    """Its title, as reports show it."""
    fingerprint: str

    @property
    def key(self) -> tuple[str, str]:
        """What a waiver is for: the table, and the definition of the check."""
        return self.table, self.fingerprint


class WaivedCheck(WaivableCheck):
    """A failed check that is waived, and by which waiver."""

    by: list[str]
    """Everybody who waived it."""
    reason: str
    until: str
    """When the waiver ends, in ISO 8601: the earliest end that any of them named."""
    run_id: str
    """The run that published under it first."""
    workflow_id: str = ""


def check_fingerprint(check: Check, pipeline: str) -> str:
    """Return the SHA-256, in hexadecimal, of the name of a pipeline and of what its check demands.

    That is all its parameters, and not where it is written. A waiver that people sign is so for one pipeline.
    """
    parameters = check.model_dump(mode="json", by_alias=True, exclude={"at", "waivable"})
    text = json.dumps([pipeline, parameters], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def waivable_checks(verdicts: Sequence[CheckResult], tables: Mapping[str, Table], pipeline: str) -> list[WaivableCheck]:
    """Return the failed checks of an audit of a pipeline that may be waived; empty if any other verdict blocks.

    A check that could not be answered is no failure: nobody can know what would be waived.
    """
    checks = []
    for verdict in verdicts:
        if not verdict.blocks:
            continue
        listed = tables[verdict.table].checks if verdict.table in tables else []
        check = listed[verdict.index] if 0 <= verdict.index < len(listed) else None
        if verdict.verdict != "fail" or check is None or not check.waivable:
            return []
        checks.append(
            WaivableCheck(
                table=verdict.table,
                index=verdict.index,
                check=check_title(check),
                fingerprint=check_fingerprint(check, pipeline),
            )
        )
    return checks


def waivable(checks: Sequence[WaivableCheck]) -> list[WaivableCheck]:
    """Return checks without what is said of their waivers."""
    fields = set(WaivableCheck.model_fields)
    return [WaivableCheck.model_validate(check.model_dump(include=fields)) for check in checks]


def parse_until(text: str) -> datetime:
    """Return when a waiver ends; a date means the end of that day, in UTC.

    Raises:
        ValueError: it is neither a date nor a time with an offset.
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
        f"{text[:40]!r} is no end of a waiver: write a date, as 2026-12-01 (until the end of that day, UTC), or a time "
        "with its offset, as 2026-12-01T12:00+00:00"
    )


def until_problem(text: str, now: datetime) -> str | None:
    """Return why a waiver may not end then, or None if it may."""
    if not text.strip():
        return "a waiver needs an end: --until DATE"
    try:
        until = parse_until(text)
    except ValueError as error:
        return str(error)
    if until <= now:
        return f"a waiver has to end in the future, and {text.strip()} is over"
    latest = now.astimezone(timezone.utc).date() + timedelta(days=MAX_DAYS)
    if until.date() > latest:
        return f"a waiver may hold for {MAX_DAYS} days, until {latest} at the latest: {text.strip()} is later"
    return None


def reason_problem(reason: str) -> str | None:
    """Return why a text cannot be the reason of a waiver, or None if it can: one line that people can read."""
    if not reason.strip():
        return "a waiver needs a reason: --reason …"
    if len(reason) > REASON_LIMIT:
        return f"the reason of a waiver has {len(reason)} characters, and may have {REASON_LIMIT}"
    if not reason.isprintable():
        return "the reason of a waiver is one line, without control or invisible characters"
    return None


def waiver_names(checks: Sequence[WaivableCheck]) -> list[str]:
    """Return how a person names each of these checks, once for each definition, so that no two have one name."""
    distinct = {check.key: check for check in checks}.values()
    names = []
    for check in distinct:
        forms = _forms(check)
        names.append(next((form for form in forms if sum(form in _forms(each) for each in distinct) == 1), forms[-1]))
    return names


def choose_checks(names: Sequence[str], checks: Sequence[WaivableCheck]) -> list[WaivableCheck]:
    """Return the checks that a person named.

    Raises:
        InvalidPipeline: a name is that of none of them, or of several.
    """
    distinct = {check.key: check for check in checks}
    chosen = []
    for name in names:
        matching = [check for check in distinct.values() if " ".join(name.split()) in _forms(check)]
        if len(matching) != 1:
            why = "is the name of several failed checks" if matching else "is no failed check that waits for a waiver"
            listed = ", ".join(waiver_names(checks))
            raise InvalidPipeline(f"--waive {name[:200]!r} {why}. What may be waived: {listed or 'nothing'}")
        chosen.append(matching[0])
    return chosen


def waive_command(run: str, checks: Sequence[WaivableCheck], command: str = COMMAND) -> str:
    """Return the command that waives these checks, for a person to complete."""
    return f"{command} approve {run} {waive_options(checks)} --reason ... --until DATE"


def waive_options(checks: Sequence[WaivableCheck]) -> str:
    """Return the options of `approve` that name these checks, quoted for a shell."""
    return " ".join(f"--waive {shlex.quote(name)}" for name in waiver_names(checks))


def describe_checks(checks: Sequence[WaivableCheck]) -> str:
    """Return the names of checks with their tables: `unique(id) of t.x, not_null(id) of t.y`."""
    return ", ".join(dict.fromkeys(f"{check.check} of {check.table}" for check in checks))


def _forms(check: WaivableCheck) -> tuple[str, str, str]:
    """Return the names by which a check may be called, the shortest first."""
    title = " ".join(check.check.split())
    with_table = f"{check.table}: {title}"
    return title, with_table, f"{with_table}@{check.fingerprint[:_SHOWN_DIGITS]}"
