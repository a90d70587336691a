"""A person's decision, stated so that others can verify it."""

import getpass
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from sluice.approval import Ruling
from sluice.run import RunStatus
from sluice.secrets import read_secret
from sluice.settings import Settings
from sluice.statements import Statement, new_key, signed


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
        signature=signed(statement, key) if key else "",
    )


def approver_key(
    file: Annotated[Path, typer.Argument(help="Where the private key is to be kept; it must not be there yet.")],
    by: Annotated[str | None, typer.Option("--by", help="Whose key it is.", show_default="you")] = None,
) -> None:
    """Make a key that signs decisions, and print the line that lists its owner among those who may decide."""
    pem, public = new_key()
    write_secret(file, pem)
    print(f"{by or getpass.getuser()} {public}")


def write_secret(file: Path, text: str) -> None:
    """Write a secret into a new file, for its owner's eyes alone.

    Leaves with 2 if the file is there already, or its folder is not.
    """
    try:
        file.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        refuse(f"{file} is there already; a key is never overwritten")
    except OSError as error:
        refuse(f"{file}: {error.strerror}")
    file.write_text(text)


def refuse(why: str) -> NoReturn:
    """Leave with the exit code of wrong use, and one message."""
    print(f"sluice: {why}", file=sys.stderr)
    raise typer.Exit(2)
