"""Verify that the approver whose name a decision carries signed it."""

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
    """The activity `verify_decision`.

    Needs the file of approvers; only an empty name of it means that no signature is needed.
    """

    approvers_file: str = ""

    @activity.defn(name="verify_decision")
    def verify_decision(self, input: VerifyDecisionInput) -> str:
        """Return why a decision does not count, or "" if its author signed it or nobody has to.

        Whether a waiver holds a secret is asked here and not in the workflow: what is taken for one may change with a
        release, and a replay may not.
        """
        why = verification_error(input.decision, input.run_id, read_approvers(self.approvers_file))
        return why or secret_problem(input.decision.waivers)


def read_approvers(file: str) -> Approvers | None:
    """Read the file of approvers again for each decision, so that a change needs no new worker.

    Returns None only if no file is named: then no signature is needed.

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
