"""Decisions by people: who may decide what, and when a decision counts."""

from collections.abc import Sequence

from pydantic import ConfigDict, Field

from sluice.base_model import Model


class Decision(Model):
    """A person's decision about one audited hash: as it arrives, as it is recorded, and what is signed of it.

    The signals `approve` and `reject` set `approve` by their name; the update `decide` needs it in the payload.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    approve: bool | None = None
    by: str = ""
    reason: str = ""
    audited_hash: str = ""
    """The hash that the person saw; empty means the one that waits."""
    at: str = ""
    """When the run recorded it, in ISO 8601."""
    audit_digest: str = ""
    """The digest of the audit report that the person saw."""
    said_at: str = ""
    """When the person decided, in ISO 8601."""
    signature: str = ""
    """The person's signature (`sluice/approval/signatures.py`), where approvers have keys."""


class RefusedDecision(Model):
    """A decision that did not count, and why."""

    by: str
    why: str


class ApprovalRecord(Model):
    """The decisions about a run that counted, and those that were refused."""

    required: int
    decisions: list[Decision] = Field(default_factory=list)
    refused: list[RefusedDecision] = Field(default_factory=list)
    expired: bool = False


def is_same_person(one: str, other: str) -> bool:
    """Return whether two names are of one person: case and the machine (`ana@host`) make no difference."""
    return one.strip().split("@")[0].casefold() == other.strip().split("@")[0].casefold()


def refusal(
    decision: Decision,
    waiting_hash: str | None,
    required: int,
    decisions: Sequence[Decision],
    stage: str,
    starter: str = "",
) -> str | None:
    """Return why a decision does not count, or None if it does.

    Args:
        waiting_hash: the audited hash that waits for a decision, if one does.
        required: how many people have to approve.
        decisions: the decisions about that hash so far.
        stage: the stage of the run, for the message.
        starter: who may not decide, where `four_eyes` is set.
    """
    if not decision.by.strip():
        return "a decision needs the name of who takes it: set `by`"
    if decision.approve is None:
        return "a decision needs `approve`: true or false"
    if approval_outcome(required, decisions) is not None:
        last = decisions[-1]
        return f"it was {'approved' if last.approve else 'rejected'} by {last.by} at {last.at} already"
    if waiting_hash is None:
        return f"the run is not waiting for approval: it is {stage}"
    if decision.audited_hash and decision.audited_hash != waiting_hash:
        return f"it is for {decision.audited_hash[:12]}, but what waits is {waiting_hash[:12]}: look again"
    return _person_refusal(decision, required, decisions, starter)


def _person_refusal(decision: Decision, required: int, decisions: Sequence[Decision], starter: str) -> str | None:
    if starter and is_same_person(decision.by, starter):
        return f"{decision.by.strip()} started the run, and `four_eyes` asks for another person"
    if any(is_same_person(decision.by, earlier.by) for earlier in decisions):
        return f"{decision.by.strip()} decided already; {required} different people are required"
    return None


def approval_outcome(required: int, decisions: Sequence[Decision]) -> bool | None:
    """Return True when enough people approved, False when one rejected, None while neither holds."""
    if any(not decision.approve for decision in decisions):
        return False
    return True if len(decisions) >= required else None
