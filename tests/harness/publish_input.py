"""Inputs of `publish_branch` for tests."""

from collections.abc import Iterable
from typing import Any

from sluice.contracts.publish import MainRequirements, MergeApproval, MergeCommit, PublishBranchInput
from sluice.contracts.references import BranchRef, RunRef


def publish_input(
    run_ref: RunRef,
    branch: BranchRef,
    head: str,
    properties: dict[str, str],
    *,
    tables: Iterable[str] = (),
    approval: MergeApproval | None = None,
    **main: Any,
) -> PublishBranchInput:
    """Return the input of a merge by `ana`; `main` are the fields of `MainRequirements`."""
    return PublishBranchInput(
        run_ref=run_ref,
        branch=branch,
        head=head,
        tables=list(tables),
        commit=MergeCommit(message="m", author="ana", properties=properties),
        approval=approval or MergeApproval(),
        main=MainRequirements(**main),
    )
