"""Many runs at once over several tables, while requests fail, connections are cut, and workers are killed."""

import random
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from tests.harness.faults import FaultHarness, on_both_catalogs
from tests.harness.proxies import CuttingProxy, IcebergProxy, NessieProxy, seeded
from tests.harness.seeds import new_seed

_TABLES = 3
_ATTEMPTS = 12
"""Attempts per run. Spark calls Nessie some ten times and gives up after one failed answer, so few attempts succeed."""


def run_under_faults(faults: FaultHarness, runs: int, seed: int, kills: int) -> None:
    """Start concurrent runs under random faults, and check the result. The seed repeats the schedule of faults."""
    print(f"seed {seed}: SLUICE_SEED={seed} repeats it")
    draw = random.Random(seed)
    host, port = faults.environment["TEMPORAL_ADDRESS"].split(":")
    address = "ICEBERG_URI" if "ICEBERG_URI" in faults.environment else "NESSIE_URI"
    proxy = IcebergProxy if address == "ICEBERG_URI" else NessieProxy
    catalog = proxy(faults.environment[address], seeded(seed, 0.08))
    temporal = CuttingProxy(host, int(port), seed)
    through = {address: catalog.uri, "TEMPORAL_ADDRESS": temporal.address}
    try:
        current = faults.start_worker(**through)
        started = [
            faults.start_tagged(f"stress-{n}", f"t.stress_{seed % 10**6}_{n % _TABLES}", rows=5, attempts=_ATTEMPTS)
            for n in range(runs)
        ]
        with ThreadPoolExecutor(3) as pool:
            watched = [pool.submit(faults.result, run) for run in started]
            for _ in range(kills):
                if not wait(watched, timeout=draw.uniform(8, 20)).not_done:
                    break
                current.kill()
                current = faults.start_worker(**through)
            results = [each.result() for each in watched]
    finally:
        temporal.stop()
        catalog.stop()
    kept = [result["branch"] for result in results if result["outcome"] != "published" and result["branch"]]
    problems = faults.problems(results, kept)
    outcomes = [result["outcome"] for result in results]
    assert not problems, (seed, problems)
    assert catalog.done and temporal.cuts
    assert outcomes.count("published") >= 0.9 * runs, (seed, [(r["outcome"], r["reason"]) for r in results])


@pytest.mark.matrix
@on_both_catalogs(pytest.mark.matrix)
def test_a_few_runs_under_stress(faults: FaultHarness) -> None:
    """The catalog fails, Temporal is cut off, a worker is killed: what four runs at once publish is on main once."""
    run_under_faults(faults, runs=4, seed=new_seed(), kills=1)


@pytest.mark.matrix
@pytest.mark.timeout(1800)
@on_both_catalogs(pytest.mark.matrix)
def test_many_runs_under_stress(faults: FaultHarness) -> None:
    """The catalog fails, Temporal is cut off, workers are killed: what twenty runs at once publish is on main once."""
    run_under_faults(faults, runs=20, seed=new_seed(), kills=4)
