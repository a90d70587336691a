"""Check that each registration target is reachable and accepts its credentials."""

import os
import socket
from urllib.parse import urlsplit

from lakehouse.targets.open_mirror import open_mirror
from sluice.contracts.examination import Finding, failed
from sluice.errors import BadEnvironment, SluiceError
from sluice.registration.events import signing_key
from sluice.registration.target_kinds import AnyTarget, CommandTarget, WebhookTarget
from sluice.registration.targets import Targets

_TIMEOUT = 5.0
_REMEDY = (
    "check the target's entry in the file that SLUICE_TARGETS_FILE names, and the address, program or secret in that "
    "entry (docs/after-publish.md)"
)


def examine_targets(targets: Targets, lake: str) -> list[Finding]:
    """Check each target. A failed check does not stop the others."""
    if not targets.targets:
        return [Finding(part="targets", state="off", detail="no targets are listed: SLUICE_TARGETS_FILE is not set")]
    return [_examine_target(f"target {name}", target, lake) for name, target in targets.targets.items()]


def _examine_target(part: str, target: AnyTarget, lake: str) -> Finding:
    try:
        return Finding(part=part, state="ok", detail=_examine(target, lake))
    except SluiceError as error:
        return failed(part, str(error), _REMEDY)
    except OSError as error:
        return failed(part, error.strerror or type(error).__name__, _REMEDY)
    except Exception as error:  # its text may contain the arguments of the target's library
        return failed(part, type(error).__name__, "see the log of the worker")


def _examine(target: AnyTarget, lake: str) -> str:
    """Check a target without sending it anything; return its state.

    Raises:
        SluiceError: the target cannot be used as it is configured.
        OSError: the target cannot be reached.
    """
    if isinstance(target, WebhookTarget):
        signing_key(target.secret.read(os.environ))
        parts = urlsplit(target.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname or "", port), _TIMEOUT).close()
        return f"{parts.netloc} accepts connections; no event was sent"
    if isinstance(target, CommandTarget):
        if not os.access(target.command[0], os.X_OK):
            raise BadEnvironment(f"{target.command[0]} is not a program that the worker may run")
        return f"{target.command[0]} is a program that the worker may run. This check did not run it"
    if why := target.location_problem(lake):
        raise BadEnvironment(why)
    return open_mirror(target).examine()
