"""The publish step: merge exactly the audited hash into main."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.checks.verdicts import AuditReport
    from sluice.contracts.publish import (
        FindConflictsInput,
        MainRequirements,
        MergeApproval,
        MergeCommit,
        PublishBranchInput,
    )
    from sluice.publishing.certificate import certificate, merge_message
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import raise_if_cancelled
    from workflows.run.run_state import RunState
    from workflows.workflow_task import end_workflow_task


async def premerge_check(calls: ActivityCalls, state: RunState) -> list[str]:
    """Try the merge in a dry run, before people decide; return the tables that main changed meanwhile."""
    branch, write_result = state.attempt.branch, state.attempt.write_result
    assert branch and write_result
    state.enter_stage("pre-merge check", "dry run of the merge")
    input = FindConflictsInput(branch=branch, head=write_result.head, watched_tables=state.watched_tables)
    conflicts = await calls.find_conflicts(input)
    raise_if_cancelled()
    return conflicts


async def publish(calls: ActivityCalls, state: RunState, report: AuditReport) -> list[str]:
    """Merge the audited hash; return the tables that main changed meanwhile, if that prevented the merge."""
    if state.attempt.previous_audit:  # since the rebase there were only local activities
        await end_workflow_task(calls, state, "receive a cancellation before the merge")
        raise_if_cancelled()
    state.enter_stage("publishing", f"merge {report.audited_hash[:12]} into {state.request.target or 'main'}")
    state.attempt.is_publishing = True
    publication = await calls.publish_branch(_publish_input(state, report))
    if publication.merged:
        state.record_publication(publication)
        return []
    state.attempt.is_publishing = publication.merge_requested  # an earlier try may still send its request
    raise_if_cancelled()
    return publication.conflicts


def _publish_input(state: RunState, report: AuditReport) -> PublishBranchInput:
    assert state.attempt.branch and state.attempt.write_result
    request, run_ref, branch = state.request, state.run_ref, state.attempt.branch
    tables, waived = list(state.attempt.write_result.tables), state.result.waived
    properties = certificate(
        request, run_ref, report, state.decisions, state.manifest, state.watched_tables, waived, branch.guarantee
    )
    return PublishBranchInput(
        run_ref=run_ref,
        branch=branch,
        head=report.audited_hash,
        tables=tables,
        commit=MergeCommit(
            message=merge_message(state.result.publish, run_ref, tables),
            author=request.starter,
            properties=properties,
        ),
        approval=MergeApproval(
            audit_digest=report.digest, terms=state.approval_terms, decisions=state.decisions, waived=waived
        ),
        main=MainRequirements(
            watched_tables=state.watched_tables,
            published=state.publication_check,
            first_base=state.first_base,
            all_files=bool(request.resume) or not request.pipeline.write.built_in,
        ),
        has_merge_slot=state.merge_slot.is_held,
    )
