"""Nessie fails before it executes a request, after it did but before its answer arrives, or it is late."""

import pytest

from tests.harness.faults import FaultHarness
from tests.harness.proxies import FAULTS, Fault, NessieProxy, once


def _cases() -> list[object]:
    """Return the cases. Spark sends only commits, so the other requests fail alike with a warm Spark."""
    always = {("merge", "drop"), ("commit", "drop")}
    return [
        pytest.param(
            kind,
            fault,
            id=f"{kind} {fault}",
            marks=[
                *([] if (kind, fault) in always else [pytest.mark.matrix]),
                *([] if kind == "commit" else [pytest.mark.warm]),
            ],
        )
        for kind in ("create", "commit", "merge", "delete")
        for fault in FAULTS
    ]


@pytest.mark.parametrize(("kind", "fault"), _cases())
def test_one_request_fails(kind: str, fault: Fault, faults: FaultHarness) -> None:
    """One request of a kind fails, Spark's included; the run is published once."""
    proxy = NessieProxy(faults.environment["NESSIE_URI"], once(kind, fault, times=2))
    try:
        faults.start_worker(NESSIE_URI=proxy.uri)
        run = faults.start_tagged(f"nessie-{kind}-{fault}", f"t.nessie_{kind}_{fault}")
        result = faults.result(run)
        assert proxy.done
    finally:
        proxy.stop()
    assert (result["outcome"], result["reason"]) == ("published", ""), (result, proxy.done)
    assert not faults.problems([result])


@pytest.mark.matrix
@pytest.mark.parametrize("fault", FAULTS)
def test_spark_s_own_commit_fails(fault: Fault, faults: FaultHarness) -> None:
    """Spark's own commit fails, or its answer is lost; rows are there once."""
    proxy = NessieProxy(faults.environment["NESSIE_URI"], once("commit", fault, number=2))
    try:
        faults.start_worker(NESSIE_URI=proxy.uri)
        run = faults.start_tagged(f"spark-{fault}", f"t.spark_{fault}")
        result = faults.result(run)
        assert proxy.done
    finally:
        proxy.stop()
    assert result["outcome"] == "published", (result, proxy.done)
    assert not faults.problems([result])
