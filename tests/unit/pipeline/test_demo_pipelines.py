"""The pipelines of `make demo S3=1`: those of the repository, with their files in the bucket of sources."""

from pathlib import Path

import pytest

from devstack.demo import write_pipelines_of_store
from devstack.landing import FAULTY, FLIGHTS
from devstack.stack import ROOT
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.model import Pipeline

OF_DEMO = {
    "nyc_flights.yml": f"s3://mine/{FLIGHTS}/*.csv",
    "nyc_flights_faulty.yml": f"s3://mine/{FAULTY}/*.csv",
    "arrivals/orders.yml": "s3://mine/landing/demo-orders/",
}
"""The path of the files of each pipeline of the demo."""
BESIDE_IT = {"film_permits.yml"}
"""Examples that load files and are not part of the demo."""


def pipelines(folder: Path) -> dict[str, Pipeline]:
    files = {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*.yml"))}
    return {name: parse_pipeline(file.read_text(), name) for name, file in files.items()}


@pytest.fixture
def written(tmp_path: Path) -> dict[str, Pipeline]:
    write_pipelines_of_store(tmp_path, "mine")
    return pipelines(tmp_path)


def test_every_source_and_landing_zone_of_the_demo_is_in_the_bucket(written: dict[str, Pipeline]) -> None:
    loading = {name: each for name, each in written.items() if each.write.source or each.arrival}
    assert loading.keys() == OF_DEMO.keys() | BESIDE_IT, "a pipeline that loads files has no case here"
    for name, path in OF_DEMO.items():
        arrival, source = loading[name].arrival, loading[name].write.source
        assert (arrival.from_ if arrival else source and source.path) == path


def test_nothing_else_of_the_pipelines_is_changed(written: dict[str, Pipeline]) -> None:
    original = pipelines(ROOT / "pipelines")
    assert written.keys() == original.keys()
    for name, pipeline in written.items():
        same = {"write": original[name].write, "arrival": original[name].arrival}
        assert pipeline.model_copy(update=same) == original[name]
