"""The example of the film permits: a borough is deleted on a branch, approved, and published with a message."""

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from devstack.film_permits import BOROUGHS, film_permits
from devstack.stack import ROOT
from tests.harness.lake import LakeReader
from tests.harness.system import SystemHarness

TABLE, REMOVED = "nyc.film_permits", "Staten Island"
LOAD = (ROOT / "pipelines" / "film_permits.yml").read_text()
DELETE = (ROOT / "pipelines" / "film_permits_without_staten_island.yml").read_text()
LEFT = {borough: count for borough, count in BOROUGHS.items() if borough != REMOVED}
PERMITS = "09b7f4858a29643b4643f5ac9030df7c"


def boroughs(lake: LakeReader, ref: str = "main") -> Counter[str]:
    return Counter(row["borough"] for row in lake.rows(TABLE, ref))


def properties(lake: LakeReader, commit: str) -> dict[str, str]:
    return {key: values[0] for key, values in lake.commit(commit)["allProperties"].items()}


@pytest.mark.slow
def test_the_permits_of_one_borough_are_deleted(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    permits = tmp_path / "data" / "permits" / "permits.csv"
    early = system.run(DELETE)
    assert (early.json["outcome"], early.code) == ("failed", 6), early
    assert early.err == "statement 1: there is no table `nyc`.`film_permits`"

    permits.parent.mkdir(parents=True)
    permits.write_bytes(film_permits())
    assert hashlib.md5(permits.read_bytes()).hexdigest() == PERMITS  # the same on every machine
    loaded = system.run(LOAD)
    assert loaded.json["outcome"] == "published", loaded
    assert lake.commit(lake.head())["message"] == "Load 1,000 film permits"
    assert loaded.json["summary"]["added"] == 1_000 and loaded.json["summary"]["new_tables"] == [TABLE]
    assert boroughs(lake) == BOROUGHS

    head = lake.head()
    run = system.start(DELETE)
    waiting = system.wait_for_stage(run, "waiting for approval")
    assert (lake.head(), boroughs(lake)) == (head, BOROUGHS)  # readers do not see the change
    assert boroughs(lake, waiting["branch"]) == LEFT
    shown = system.command("status", run).out
    assert "to merge  1 table: 25 rows removed\n" in shown
    assert f"work  {TABLE} from tables of the lake\n" in shown
    assert "message  Remove the film permits of Staten Island\n" in shown
    assert "metadata  owner=film-office, ticket=FILM-42\n" in shown

    system.approve(run)
    ended = system.wait_for_end(run)
    assert ended.json["outcome"] == "published", ended
    assert boroughs(lake) == LEFT
    assert len({row["permit_id"] for row in lake.rows(TABLE)}) == 975
    checks = {check["check"]: check["verdict"] for check in ended.json["checks"]}
    assert checks == {"row_count": "pass", "accepted_values": "pass"}
    assert {key: count for key, count in ended.json["summary"].items() if count} == {"tables": 1, "removed": 25}
    commit = lake.commit(lake.head())
    assert commit["message"] == "Remove the film permits of Staten Island"
    stated = properties(lake, lake.head())
    assert {key: value for key, value in stated.items() if "metadata" in key} == {
        "sluice.metadata.owner": "film-office",
        "sluice.metadata.ticket": "FILM-42",
    }
    assert stated["sluice.run-id"] == ended.json["run_id"] and "ana" in stated["sluice.approved-by"]
    assert commit["parentCommitHashes"] == [head, ended.json["audited_hash"]]
    assert not lake.branches("film-permits")

    again = system.run(DELETE.replace("FILM-42", "FILM-43"))  # another ticket does not change the input
    assert (again.code, again.json["cause"]) == (0, "already_published")
    too_much = DELETE.replace("= 'Staten Island'", "IN ('Staten Island', 'Bronx')")
    stopped = system.run(too_much)
    assert (stopped.code, stopped.json["outcome"]) == (3, "quarantined")
    assert {check["verdict"] for check in stopped.json["checks"]} == {"fail"}
    assert boroughs(lake) == LEFT
    assert set(boroughs(lake, stopped.json["branch"])) == {"Manhattan", "Brooklyn", "Queens"}
