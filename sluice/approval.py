"""Decisions by people: who may decide what, and when a decision counts."""

from pydantic import ConfigDict, Field

from sluice.model import Model


class Decision(Model):
    """A person's yes or no, as it arrives."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    by: str = ""
    reason: str = ""
    audited_hash: str = ""
    """The hash that the person saw; empty takes the one that waits."""


class Ruling(Decision):
    """A decision that says itself whether it is a yes: what the update `decide` takes."""

    approve: bool


class Ruled(Model):
    """A decision that counted."""

    approve: bool
    by: str
    reason: str
    audited_hash: str
    at: str
    """When it was taken, in ISO 8601."""


class Refused(Model):
    """A decision that did not count, and why."""

    by: str
    why: str


class ApprovalRecord(Model):
    """Everything that was decided about a run, and what was refused."""

    required: int
    decisions: list[Ruled] = Field(default_factory=list)
    refused: list[Refused] = Field(default_factory=list)
    expired: bool = False


def refusal(
    decision: Decision, waiting_for: str | None, required: int, decisions: list[Ruled], stage: str
) -> str | None:
    """Return why a decision does not count, or None if it does.

    Args:
        waiting_for: the audited hash that waits for a decision, if one does.
        decisions: what was decided about that hash so far.
        stage: where the run is, for the message.
    """
    if not decision.by.strip():
        return "a decision needs the name of who takes it"
    if settled(required, decisions) is not None:
        last = decisions[-1]
        return f"it was {'approved' if last.approve else 'rejected'} by {last.by} at {last.at} already"
    if waiting_for is None:
        return f"the run is not waiting for approval: it is {stage}"
    if decision.audited_hash and decision.audited_hash != waiting_for:
        return f"it is for {decision.audited_hash[:12]}, but what waits is {waiting_for[:12]}: look again"
    if any(decision.by.strip() == earlier.by for earlier in decisions):
        return f"{decision.by.strip()} decided already; {required} different people are asked for"
    return None


def settled(required: int, decisions: list[Ruled]) -> bool | None:
    """Return True when enough people said yes, False when one said no, None while neither holds."""
    if any(not decision.approve for decision in decisions):
        return False
    return True if len(decisions) >= required else None
