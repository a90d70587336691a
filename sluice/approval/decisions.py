"""Decisions by people about a run, and the rules for counting them."""

import unicodedata
from collections.abc import Sequence

from pydantic import Field

from sluice.approval.waivers import REASON_LIMIT, WaivableCheck, Waiver
from sluice.base_model import WireMessage
from sluice.times import format_time

NAME_LIMIT = 200
"""Maximum length of a person's name, in characters."""
_INVISIBLE = ("Cf", "Cc")
"""Unicode categories of invisible characters: formats, such as the zero-width space, and controls."""


class Decision(WireMessage):
    """A person's decision about one audited hash: the message, the record and the signed fields.

    The signals `approve` and `reject` set the field `approve`; the update `decide` needs it in the payload.
    """

    approve: bool | None = None
    by: str = ""
    reason: str = ""
    audited_hash: str = ""
    """The hash that the person saw. An unsigned decision may leave it empty, which means the hash that waits."""
    at: str = ""
    """Time at which the run recorded it, in ISO 8601."""
    audit_digest: str = ""
    """The digest of the audit report that the person saw. An unsigned decision may leave it empty, like the hash."""
    said_at: str = ""
    """Time at which the person decided, in ISO 8601."""
    signature: str = ""
    """The person's signature (`sluice/approval/signatures.py`), if approvers have keys."""
    waivers: list[Waiver] = Field(default_factory=list)
    """The failed checks that an approval waives."""


class RefusedDecision(WireMessage):
    """A decision that did not count, with the reason."""

    by: str
    why: str


class ApprovalRecord(WireMessage):
    """The decisions about a run that counted, and those that were refused."""

    required: int
    why: str = ""
    """Reason for the required number, if the pipeline alone does not explain it."""
    excluded: str = ""
    """The person who started the run and may not decide, because four eyes are required."""
    signed: bool = False
    """True if approvers have keys, so that each decision needs a signature."""
    decisions: list[Decision] = Field(default_factory=list)
    refused: list[RefusedDecision] = Field(default_factory=list)
    expired: bool = False
    to_waive: list[WaivableCheck] = Field(default_factory=list)
    """The failed checks that each approval must waive; empty if the audit passed, or waivers in force cover it."""


class AwaitedDecision(WireMessage):
    """The approval that a run waits for: its hash, its report, and the number of people."""

    audited_hash: str | None = None
    """The hash to decide about; None while the run does not wait."""
    audit_digest: str = ""
    required: int = 1
    starter: str = ""
    """The person who started the run and may not decide, if four eyes are required."""
    signed: bool = False
    """True if approvers have keys, so that a decision names the hash and the digest and signs them."""
    to_waive: list[WaivableCheck] = Field(default_factory=list)
    """The failed checks that an approval must waive (`sluice/approval/waiving.py`)."""


def person(name: str) -> str:
    """Return the normalised name of a person, for comparing people.

    Case, white space, Unicode's compatible and invisible characters, and the machine (`ana@host`) make no difference.
    """
    visible = "".join(
        character
        for character in unicodedata.normalize("NFKC", name)
        if character.isspace() or unicodedata.category(character) not in _INVISIBLE
    )
    return unicodedata.normalize("NFKC", " ".join(visible.split("@")[0].split()).casefold())


def is_same_person(one: str, other: str) -> bool:
    """Return True if two names belong to one person."""
    return person(one) == person(other)


def refusal(decision: Decision, awaited: AwaitedDecision, decisions: Sequence[Decision], stage: str) -> str | None:
    """Return the reason why a decision does not count, or None if it does.

    Args:
        awaited: the approval that the run waits for.
        decisions: the decisions about that hash so far.
        stage: the stage of the run, for the message.
    """
    if problem := _field_problem(decision):
        return problem
    if approval_outcome(awaited.required, decisions) is not None:
        last = decisions[-1]
        return (
            f"the run was {'approved' if last.approve else 'rejected'} by {last.by} at {format_time(last.at)} already"
        )
    if awaited.audited_hash is None:
        return f"the run is not waiting for approval: it is {stage}"
    return _report_refusal(decision, awaited) or _person_refusal(decision, awaited, decisions)


def _field_problem(decision: Decision) -> str | None:
    """Return the field that is missing or too long, or None if each is valid."""
    if not person(decision.by):
        return "a decision needs the name of the person who decides: set `by`"
    if len(decision.by) > NAME_LIMIT:
        return f"the name in `by` has {len(decision.by)} characters: the limit is {NAME_LIMIT}"
    if len(decision.reason) > REASON_LIMIT:
        return f"the reason has {len(decision.reason):,} characters: the limit is {REASON_LIMIT}"
    return "a decision needs `approve`: true or false" if decision.approve is None else None


def _report_refusal(decision: Decision, awaited: AwaitedDecision) -> str | None:
    """Return the reason why a decision is not about the hash and the report that wait, or None if it is."""
    waiting_hash = awaited.audited_hash or ""
    if decision.audited_hash and decision.audited_hash != waiting_hash:
        return (
            f"the decision is for {decision.audited_hash[:12]}, but the run waits with {waiting_hash[:12]}: "
            "look again, with `status`"
        )
    if decision.audit_digest and decision.audit_digest != awaited.audit_digest:
        return "the audit report changed since it was shown: look again, with `status`"
    if awaited.signed and not (decision.audited_hash and decision.audit_digest):
        return "approvers have keys, so a decision names the hash and the report and signs them: use `approve`"
    return None


def _person_refusal(decision: Decision, awaited: AwaitedDecision, decisions: Sequence[Decision]) -> str | None:
    if awaited.starter and is_same_person(decision.by, awaited.starter):
        remedy = "another person has to decide" + ("" if decision.approve else ", or `cancel` ends the run")
        return f"{decision.by.strip()} started the run, and four eyes are required: {remedy}"
    if earlier_decision(decision.by, decisions):
        return f"{decision.by.strip()} decided already; {awaited.required} different people are required"
    return None


def earlier_decision(name: str, decisions: Sequence[Decision]) -> Decision | None:
    """Return the decision that a person made already, or None. Each person decides once."""
    return next((earlier for earlier in decisions if is_same_person(name, earlier.by)), None)


def approval_outcome(required: int, decisions: Sequence[Decision]) -> bool | None:
    """Return True if enough people approved, False if one rejected, and None otherwise."""
    if any(not decision.approve for decision in decisions):
        return False
    return True if len(decisions) >= required else None
