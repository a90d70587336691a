"""The sandbox that workflows run in, and what it lets through."""

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

_LET_THROUGH = ("sqlglot", "sluice.sql", "opentelemetry")


def sandbox() -> SandboxedWorkflowRunner:
    """Return the runner for workflows.

    A pipeline is validated wherever it is decoded, also inside a workflow, and the SQL in its checks is parsed then.
    The parser is imported when there is something to parse; it computes and does nothing else. Traces are made by
    an interceptor of Temporal's, which keeps them out of replays.
    """
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*_LET_THROUGH))
