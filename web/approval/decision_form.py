"""The form that approves or rejects a run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import Depends, Form

from sluice.contracts.run import RunStatus
from web.approval.deciding import LONGEST_STATEMENT, StatedDecision, check_waiting_report, with_signed_text


@dataclass(frozen=True)
class DecisionForm:
    """The fields of the form."""

    report: str
    """Name of the report that the form was shown with."""
    approve: bool
    reason: str
    waive: Sequence[str]
    until: str
    statement: str
    """The text that the person's browser signed; empty if it signed nothing."""
    signature: str

    @property
    def stated(self) -> StatedDecision:
        """The decision, without its signature."""
        return StatedDecision(self.approve, reason=self.reason, waive=self.waive, until=self.until)

    def signed(self, run_id: str) -> StatedDecision:
        """Return the decision with the signature of the person's browser, if it made one.

        The reason is the signed one, because a browser sends a form with other ends of lines.

        Raises:
            InvalidPipeline: the signed text is not that of a decision about the run.
        """
        decision = with_signed_text(self.stated, self.statement, self.signature, run_id)
        return replace(decision, reason=decision.signed.reason) if decision.signed else decision

    def check(self, status: RunStatus) -> None:
        """Check that the run waits with the report of the form.

        Raises:
            InvalidPipeline: it waits with another report, or does not wait.
        """
        check_waiting_report(status, self.report)


def _read(
    report: Annotated[str, Form()],
    decision: Annotated[str, Form(pattern="^(approve|reject)$")],
    reason: Annotated[str, Form()] = "",
    waive: Annotated[list[str] | None, Form()] = None,
    until: Annotated[str, Form()] = "",
    statement: Annotated[str, Form(max_length=LONGEST_STATEMENT)] = "",
    signature: Annotated[str, Form(max_length=1000)] = "",
) -> DecisionForm:
    return DecisionForm(report, decision == "approve", reason, waive or (), until, statement, signature)


TheDecisionForm = Annotated[DecisionForm, Depends(_read)]
"""The fields of the form, as a parameter of a view."""
