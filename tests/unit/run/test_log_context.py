"""The log context: the run's fields in each log line, for any input of the activity."""

import pytest

from runtime.log_context import input_fields
from sluice.contracts.audit import AuditInput, ScanInput
from sluice.contracts.publish import ConfirmPublicationInput, DiscardBranchInput, FindConflictsInput
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.run import Notification, RecordRunInput, RunResult

RUN_REF = RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=2)
BRANCH = BranchRef(name="wap/p/r/a2", base="b", catalog_id="c")
AUDIT = AuditInput(run_ref=RUN_REF, branch=BRANCH.name, base="b", head="h", tables={})
RESULT = RunResult(run_id="r", workflow_id="w", pipeline="p")


@pytest.mark.parametrize(
    ("input", "fields"),
    [
        (FindConflictsInput(branch=BRANCH, head="h"), {"branch": "wap/p/r/a2"}),
        (RecordRunInput(run_ref=RUN_REF, result=RESULT, ended_at="noon"), {"branch": "wap/p/r/a2", "attempt": "2"}),
        (ScanInput(audit=AUDIT, undecided={}), {"branch": "wap/p/r/a2", "attempt": "2"}),
        (DiscardBranchInput(branch="wap/p/r/a1"), {"branch": "wap/p/r/a1"}),
        (ConfirmPublicationInput(run_id="r", since="b"), {"branch": ""}),
        (Notification(result=RESULT), {"branch": ""}),
    ],
)
def test_what_a_log_line_of_an_activity_says(input: object, fields: dict[str, str]) -> None:
    assert input_fields([input]) == fields
