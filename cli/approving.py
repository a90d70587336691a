"""A person's decision about what waits, signed where this person has a key."""

import getpass
from datetime import datetime, timezone

from sluice.approval.decisions import Decision
from sluice.approval.signatures import sign
from sluice.contracts.run import RunStatus
from sluice.secrets import read_secret
from sluice.settings import Settings


def make_decision(
    run_id: str, status: RunStatus | None, approve: bool, by: str | None, reason: str, settings: Settings
) -> Decision:
    """Return a decision about the audited hash and report that `status` shows."""
    decision = Decision(
        approve=approve,
        by=(getpass.getuser() if by is None else by).strip(),
        reason=reason,
        audited_hash=(status.result.audited_hash or "") if status else "",
        audit_digest=status.audit_digest if status else "",
        said_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )
    key = read_secret(settings.sluice_approval_key_file, "SLUICE_APPROVAL_KEY_FILE")
    return decision.model_copy(update={"signature": sign(decision, run_id, key)}) if key else decision
