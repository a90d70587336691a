"""The sandbox of workflows, and the modules that it lets through."""

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from sluice.pipeline.time_zones import known_zones
from workflows.refused_request import RequestCheckingRunner

_LET_THROUGH = ("sqlglot", "sluice.sql", "sluice.pipeline.time_zones", "opentelemetry")


def sandbox() -> SandboxedWorkflowRunner:
    """Return the runner for workflows.

    Decoding a pipeline validates it and parses the SQL in its checks, even inside a workflow. The parser is imported
    for the first SQL. It only computes, so it is safe in a workflow. The names of time zones are read from files, which
    the sandbox forbids, so they are read here. An interceptor of Temporal makes the traces, and keeps them out of
    replays.
    """
    known_zones()
    return RequestCheckingRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*_LET_THROUGH))
