"""The publish step: merge exactly the audited hash into main."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.checks.verdicts import AuditReport
    from sluice.contracts.publish import FindConflictsInput, PublishBranchInput
    from sluice.publishing.certificate import certificate, merge_message
    from sluice.publishing.retries import count_rebases
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import raise_if_cancelled
    from workflows.run.run_state import RunState
    from workflows.workflow_task import end_workflow_task


async def premerge_check(calls: ActivityCalls, state: RunState) -> list[str]:
    """Try the merge in a dry run, before people decide; return the tables that main changed meanwhile."""
    assert state.branch and state.write_result
    state.enter_stage("pre-merge check", "dry run of the merge")
    input = FindConflictsInput(branch=state.branch, head=state.write_result.head, watched_tables=state.watched_tables)
    conflicts = await calls.find_conflicts(input)
    raise_if_cancelled()
    return conflicts


async def publish(calls: ActivityCalls, state: RunState, report: AuditReport) -> list[str]:
    """Merge the audited hash; return the tables that main changed meanwhile, if that prevented the merge."""
    assert state.branch and state.write_result
    if state.previous_audit:  # since the rebase there were only local activities
        await end_workflow_task(calls, state, "receive a cancellation before the merge")
        raise_if_cancelled()
    state.enter_stage("publishing", f"merge {report.audited_hash[:12]} into {state.request.target or 'main'}")
    state.is_publishing = True
    request = state.request
    waived = state.result.waived
    input = PublishBranchInput(
        run_ref=state.run_ref,
        branch=state.branch,
        head=report.audited_hash,
        message=merge_message(state.result.publish, state.run_ref, list(state.write_result.tables)),
        properties=certificate(
            request,
            state.run_ref,
            report,
            state.decisions,
            state.manifest,
            state.watched_tables,
            waived,
            state.branch.guarantee,
        ),
        author=request.starter,
        watched_tables=state.watched_tables,
        first_base=state.first_base,
        all_files=bool(request.resume) or not request.pipeline.write.built_in,
        audit_digest=report.digest,
        terms=state.approval_terms,
        approvals=state.decisions,
        waived=waived,
        published=state.publication_check,
        tables=list(state.write_result.tables),
        rebases=0 if state.approval.required.required else count_rebases(state.result.conflicts),
    )
    publication = await calls.publish_branch(input)
    if publication.merged:
        state.record_publication(publication)
        return []
    state.is_publishing = publication.merge_requested  # an earlier try may still send its request
    raise_if_cancelled()
    return publication.conflicts
