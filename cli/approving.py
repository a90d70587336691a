"""A person's decision, stated so that others can verify it."""

import getpass
from datetime import datetime, timezone

from sluice.approval.decisions import Ruling
from sluice.approval.signatures import Statement, sign
from sluice.contracts.run import RunStatus
from sluice.secrets import read_secret
from sluice.settings import Settings


def ruling_on(
    run_id: str, seen: RunStatus | None, approve: bool, by: str | None, reason: str, settings: Settings
) -> Ruling:
    """Return a decision about what waits now, signed where this person has a key."""
    statement = Statement(
        approve=approve,
        by=(getpass.getuser() if by is None else by).strip(),
        reason=reason,
        run_id=run_id,
        audited_hash=(seen.result.audited_hash or "") if seen else "",
        audit_digest=seen.audit_digest if seen else "",
        at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )
    key = read_secret(settings.sluice_approval_key_file, "SLUICE_APPROVAL_KEY_FILE")
    return Ruling(
        approve=approve,
        by=statement.by,
        reason=reason,
        audited_hash=statement.audited_hash,
        audit_digest=statement.audit_digest,
        said_at=statement.at,
        signature=sign(statement, key) if key else "",
    )
