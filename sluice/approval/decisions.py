"""Decisions by people: who may decide what, and when a decision counts."""

import unicodedata
from collections.abc import Sequence

from pydantic import ConfigDict, Field

from sluice.approval.waivers import WaivableCheck, Waiver
from sluice.base_model import Model
from sluice.times import format_time

NAME_LIMIT = 200
"""So many characters the name of a person may have."""
_INVISIBLE = ("Cf", "Cc")
"""Categories of Unicode's characters that are not seen: formats, as the zero-width space, and controls."""


class Decision(Model):
    """A person's decision about one audited hash: as it arrives, as it is recorded, and what is signed of it.

    The signals `approve` and `reject` set `approve` by their name; the update `decide` needs it in the payload.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    approve: bool | None = None
    by: str = ""
    reason: str = ""
    audited_hash: str = ""
    """The hash that the person saw; empty means the one that waits, where decisions are not signed."""
    at: str = ""
    """When the run recorded it, in ISO 8601."""
    audit_digest: str = ""
    """The digest of the audit report that the person saw; empty means the one that waits, as for the hash."""
    said_at: str = ""
    """When the person decided, in ISO 8601."""
    signature: str = ""
    """The person's signature (`sluice/approval/signatures.py`), where approvers have keys."""
    waivers: list[Waiver] = Field(default_factory=list)
    """The failed checks that an approval waives."""


class RefusedDecision(Model):
    """A decision that did not count, and why."""

    by: str
    why: str


class ApprovalRecord(Model):
    """The decisions about a run that counted, and those that were refused."""

    required: int
    why: str = ""
    """Why so many, where the pipeline alone does not say it."""
    excluded: str = ""
    """Who may not decide, since four eyes are required: who started the run."""
    decisions: list[Decision] = Field(default_factory=list)
    refused: list[RefusedDecision] = Field(default_factory=list)
    expired: bool = False
    to_waive: list[WaivableCheck] = Field(default_factory=list)
    """The failed checks that each approval has to waive; empty where the audit passed, or waivers in force cover it."""


class AwaitedDecision(Model):
    """What a run waits for: decisions about one hash and report, of so many people."""

    audited_hash: str | None = None
    """None while the run does not wait."""
    audit_digest: str = ""
    required: int = 1
    starter: str = ""
    """Who may not decide, where four eyes are asked for."""
    signed: bool = False
    """Whether approvers have keys, so that a decision names the hash and the digest and signs them."""
    to_waive: list[WaivableCheck] = Field(default_factory=list)
    """The failed checks that an approval has to waive (`sluice/approval/waiving.py`)."""


def person(name: str) -> str:
    """Return the one spelling of a person's name, by which people are compared.

    Case, white space, Unicode's compatible and invisible characters, and the machine (`ana@host`) make no difference.
    """
    visible = "".join(
        character
        for character in unicodedata.normalize("NFKC", name)
        if character.isspace() or unicodedata.category(character) not in _INVISIBLE
    )
    return unicodedata.normalize("NFKC", " ".join(visible.split("@")[0].split()).casefold())


def is_same_person(one: str, other: str) -> bool:
    """Return whether two names are of one person."""
    return person(one) == person(other)


def refusal(decision: Decision, awaited: AwaitedDecision, decisions: Sequence[Decision], stage: str) -> str | None:
    """Return why a decision does not count, or None if it does.

    Args:
        awaited: what the run waits for.
        decisions: the decisions about that hash so far.
        stage: the stage of the run, for the message.
    """
    if not person(decision.by):
        return "a decision needs the name of who takes it: set `by`"
    if len(decision.by) > NAME_LIMIT:
        return f"the name of who decides has {len(decision.by)} characters, and may have {NAME_LIMIT}"
    if decision.approve is None:
        return "a decision needs `approve`: true or false"
    if approval_outcome(awaited.required, decisions) is not None:
        last = decisions[-1]
        return f"it was {'approved' if last.approve else 'rejected'} by {last.by} at {format_time(last.at)} already"
    if awaited.audited_hash is None:
        return f"the run is not waiting for approval: it is {stage}"
    return _report_refusal(decision, awaited) or _person_refusal(decision, awaited, decisions)


def _report_refusal(decision: Decision, awaited: AwaitedDecision) -> str | None:
    """Return why a decision is not about the hash and the report that wait, or None if it is."""
    waiting_hash = awaited.audited_hash or ""
    if decision.audited_hash and decision.audited_hash != waiting_hash:
        return f"it is for {decision.audited_hash[:12]}, but what waits is {waiting_hash[:12]}: look again"
    if decision.audit_digest and decision.audit_digest != awaited.audit_digest:
        return "the audit report changed since it was shown: look again"
    if awaited.signed and not (decision.audited_hash and decision.audit_digest):
        return "approvers have keys, so a decision names the hash and the report and signs them: use `approve`"
    return None


def _person_refusal(decision: Decision, awaited: AwaitedDecision, decisions: Sequence[Decision]) -> str | None:
    if awaited.starter and is_same_person(decision.by, awaited.starter):
        return f"{decision.by.strip()} started the run, and four eyes are required: another person has to decide"
    if any(is_same_person(decision.by, earlier.by) for earlier in decisions):
        return f"{decision.by.strip()} decided already; {awaited.required} different people are required"
    return None


def approval_outcome(required: int, decisions: Sequence[Decision]) -> bool | None:
    """Return True when enough people approved, False when one rejected, None while neither holds."""
    if any(not decision.approve for decision in decisions):
        return False
    return True if len(decisions) >= required else None
