"""The workflow of a schedule: it looks for tables of targets that are behind main, and has them mended."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.registration import CheckedRegistrations, CheckRegistrationsInput
    from workflows.activity_calls import ActivityCalls


@workflow.defn(name="CheckRegistrations")
class CheckRegistrations:
    """Compares what targets hold with main, once."""

    @workflow.run
    async def run(self, input: CheckRegistrationsInput) -> CheckedRegistrations:
        """Check every target, start registrations of what differs, and report it in the Web UI."""
        result = await ActivityCalls().check_registrations(input)
        workflow.set_current_details(result.model_dump_json(indent=1))
        return result
