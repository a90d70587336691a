"""Verify that the approver named in a decision signed it."""

from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from sluice.approval.approvers import Approvers, parse_approvers
from sluice.approval.signatures import verification_error
from sluice.approval.waiving import secret_problem
from sluice.contracts.publish import VerifyDecisionInput
from sluice.errors import BadEnvironment


@dataclass(frozen=True)
class VerifyDecisionActivity:
    """Verifies decisions against the file of approvers. An empty name means that decisions need no signature."""

    approvers_file: str = ""

    @activity.defn(name="verify_decision")
    def verify_decision(self, input: VerifyDecisionInput) -> str:
        """Return the reason why a decision does not count, or "" if its signature is valid or none is needed.

        The check for secrets in waivers is here and not in the workflow, because a new release may detect secrets
        differently, and a replay must not change.
        """
        why = verification_error(input.decision, input.run_id, read_approvers(self.approvers_file))
        return why or secret_problem(input.decision.waivers)


def read_approvers(file: str) -> Approvers | None:
    """Read the file of approvers, for each decision again, so that a change needs no restart of the worker.

    Returns None only if no file is named. Then no signature is needed.

    Raises:
        BadEnvironment: the file cannot be read, or a line is not a name and a key.
    """
    if not file:
        return None
    try:
        return parse_approvers(Path(file).expanduser().read_text(), file)
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadEnvironment(f"SLUICE_APPROVERS_FILE={file}: {why}") from error
