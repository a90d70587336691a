"""Decisions by people: who may decide what, and when a decision counts."""

from pydantic import ConfigDict, Field

from sluice.approval.signatures import Statement
from sluice.base_model import Model


class Decision(Model):
    """A person's yes or no, as it arrives."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    by: str = ""
    reason: str = ""
    audited_hash: str = ""
    """The hash that the person saw; empty takes the one that waits."""
    audit_digest: str = ""
    """The digest of the report that the person saw."""
    said_at: str = ""
    """When the person said it, in ISO 8601."""
    signature: str = ""
    """The person's signature of the statement, where approvers have keys."""


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
    audit_digest: str = ""
    said_at: str = ""
    signature: str = ""

    def statement(self, run_id: str) -> Statement:
        """Return what was signed, for a run."""
        return Statement(
            approve=self.approve,
            by=self.by,
            reason=self.reason,
            run_id=run_id,
            audited_hash=self.audited_hash,
            audit_digest=self.audit_digest,
            at=self.said_at,
        )


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


def same_person(one: str, other: str) -> bool:
    """Return whether two names are one person's: case and the machine (`ana@host`) make no difference."""
    return one.strip().split("@")[0].casefold() == other.strip().split("@")[0].casefold()


def refusal(
    decision: Decision, waiting_for: str | None, required: int, decisions: list[Ruled], stage: str, starter: str = ""
) -> str | None:
    """Return why a decision does not count, or None if it does.

    Args:
        waiting_for: the audited hash that waits for a decision, if one does.
        decisions: what was decided about that hash so far.
        stage: where the run is, for the message.
        starter: who may not decide, where four eyes are asked for.
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
    return _not_this_person(decision, required, decisions, starter)


def _not_this_person(decision: Decision, required: int, decisions: list[Ruled], starter: str) -> str | None:
    if starter and same_person(decision.by, starter):
        return f"{decision.by.strip()} started the run: four eyes are asked for"
    if any(same_person(decision.by, earlier.by) for earlier in decisions):
        return f"{decision.by.strip()} decided already; {required} different people are asked for"
    return None


def settled(required: int, decisions: list[Ruled]) -> bool | None:
    """Return True when enough people said yes, False when one said no, None while neither holds."""
    if any(not decision.approve for decision in decisions):
        return False
    return True if len(decisions) >= required else None
