"""The log of Temporal's Rust core does not get between a command and its output."""

import asyncio

import pytest
from temporalio.testing import WorkflowEnvironment

from runtime.temporal_client import connect


async def test_tries_that_fail_are_not_printed_to_standard_output(
    own_time_skipping: WorkflowEnvironment, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """With `--json`, standard output is one object."""
    client = await connect({"TEMPORAL_ADDRESS": own_time_skipping.client.service_client.config.target_host})
    await own_time_skipping.shutdown()
    request = asyncio.ensure_future(client.get_workflow_handle("none").describe())
    while "retried" not in caplog.text and not request.done():
        await asyncio.sleep(0.1)
    request.cancel()
    assert "gRPC call describe_workflow_execution retried" in caplog.text
    assert capfd.readouterr().out == ""
