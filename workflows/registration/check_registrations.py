"""The scheduled workflow that finds tables of targets that are behind main, and registers them again."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.registration import CheckedRegistrations, CheckRegistrationsInput
    from workflows.activity_calls import ActivityCalls


@workflow.defn(name="CheckRegistrations")
class CheckRegistrations:
    """One comparison of the tables of all targets with main."""

    @workflow.run
    async def run(self, input: CheckRegistrationsInput) -> CheckedRegistrations:
        """Check every target, start registrations of tables that differ, and report them in the Web UI."""
        result = await ActivityCalls().check_registrations(input)
        workflow.set_current_details(result.model_dump_json(indent=1))
        return result
