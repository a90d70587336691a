"""The sandbox that workflows run in, and what it lets through."""

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions


def sandbox() -> SandboxedWorkflowRunner:
    """Return the runner for workflows.

    A pipeline is validated wherever it is decoded, also inside a workflow, and the SQL in its checks is parsed then.
    The parser imports parts of itself when they are first used; it computes and does nothing else. Traces are made by
    an interceptor of Temporal's, which keeps them out of replays.
    """
    return SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules("sqlglot", "opentelemetry")
    )
