"""Starts of deployed pipelines by the API: the key, the role, the person, and the pipelines that cannot be started."""

import asyncio
import re
import shlex
from datetime import datetime, timedelta, timezone
from itertools import pairwise

import pytest

from devstack.stack import ROOT
from tests.harness.api_client import WAITS, ApiClient
from tests.harness.asgi import Answer, Browser
from tests.harness.page import SECRET, behind_proxy, browser

KEY = "manual__2026-03-02T05:30:00.000+01:00"
PATH = "/api/pipelines/p/runs"


async def start(page: Browser, key: str = KEY, path: str = PATH) -> Answer:
    return await page.send("POST", path, headers={"idempotency-key": key})


async def test_a_key_starts_a_pipeline_once() -> None:
    client = ApiClient()
    page = behind_proxy(client, "otto")
    first, second = await asyncio.gather(start(page), start(page))
    other = await start(page, "other")
    start_id = f"sluice-test-start:p:{KEY}"
    assert [each.status for each in (first, second, other)] == [202, 202, 202]
    assert first.json == second.json == {
        **{"id": start_id, "workflow_id": WAITS, "run_id": f"run-of-{WAITS}", "outcome": None, "reason": ""},
    }  # fmt: skip
    assert list(client.starts) == [start_id, "sluice-test-start:p:other"]
    assert (await page.get(f"/api/starts/{start_id}")).json == first.json
    given = client.starts[start_id]
    scheduled = datetime.fromisoformat(given.values["scheduled_for"])
    assert (given.starter, given.way, given.key, given.pipeline.text) == ("otto", "by hand", KEY, "name: p")
    assert scheduled.utcoffset() == timedelta(hours=14), "the zone is that of the schedule"
    assert timedelta() <= datetime.now(timezone.utc) - scheduled < timedelta(minutes=10)


@pytest.mark.parametrize("key", ["", " ", "a b", "a/b", "../a", "a\tb", '"a"', "é", "a,b", "{{ a }}", "%61", "a" * 101])
async def test_a_strange_key_is_refused(key: str) -> None:
    client = ApiClient()
    answer = await start(behind_proxy(client), key)
    assert answer.status == 400 and not client.starts
    assert answer.json["error"].endswith(
        "is not a key of a start: use letters, digits, '_', '.', ':', '+' and '-', at most 100 characters"
    )


async def test_a_start_needs_one_key() -> None:
    page = behind_proxy(ApiClient())
    none = await page.send("POST", PATH)
    assert (none.status, none.json) == (400, {"error": "Idempotency-Key: the request has 0 keys, and needs one"})
    page.headers += [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    assert (await page.send("POST", PATH)).json["error"] == "Idempotency-Key: the request has 2 keys, and needs one"


@pytest.mark.parametrize("person", ["vera", "ana"])
async def test_only_an_operator_starts(person: str) -> None:
    client = ApiClient()
    answer = await start(behind_proxy(client, person))
    assert answer.status == 403 and "To start a pipeline, you need the role operator" in answer.json["error"]
    assert not client.starts
    await start(behind_proxy(client, "otto"))
    (start_id,) = client.starts
    assert (await behind_proxy(client, person).get(f"/api/starts/{start_id}?wait=1")).status == 200


@pytest.mark.parametrize("name", ["pp", "q", "P", "-", "p:a", "é", "x" * 101])
async def test_a_pipeline_that_is_not_deployed(name: str) -> None:
    client = ApiClient()
    answer = await start(behind_proxy(client), path=f"/api/pipelines/{name}/runs")
    assert answer.status == 404 and not client.starts
    if name == "pp":
        assert answer.json["error"] == (
            "the pipeline 'pp' is not deployed (did you mean 'p'?): give its file a `schedule`, and apply it by "
            "`deploy`; `list --schedules` shows those that are deployed"
        )


@pytest.mark.parametrize("name", [WAITS, "sluice-test-start:p:gone", "a b", "x" * 1000])
async def test_an_unknown_start(name: str) -> None:
    answer = await behind_proxy(ApiClient(), "vera").get(f"/api/starts/{name.replace(' ', '%20')}")
    assert (answer.status, answer.json) == (
        404, {"error": f"There is no start {name[:100]}, or Temporal no longer has it."},
    )  # fmt: skip


def requests_of_document() -> list[tuple[str, str, dict[str, str], bytes]]:
    """Return the requests of docs/api.md to the pipeline of this test: method, address, headers and body."""
    (block,) = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "api.md").read_text(), re.S)
    text = (
        block.replace("orders", "p")
        .replace("sluice-here-", "sluice-test-")
        .replace("$TOKEN", f"Authorization: Bearer {SECRET}")
    )
    requests = []
    for line in text.splitlines():
        if line.startswith("curl "):
            words = shlex.split(line.replace("$PAGE", ""))
            options = list(pairwise(words))
            headers = dict(value.split(": ") for option, value in options if option == "-H")
            body = next((value for option, value in options if option == "--json"), "")
            method = "POST" if body or ("-X", "POST") in options else "GET"
            address = next(each for each in words if each.startswith("/api/"))
            requests.append((method, address, {**headers, "content-type": "application/json"}, body.encode()))
    return requests


async def test_the_requests_of_the_document_are_answered() -> None:
    client, answers = ApiClient(), []
    page = browser(client, signed_in=False)
    for method, address, headers, body in requests_of_document():
        answers.append(await page.send(method, address, body, headers))
    assert [each.status for each in answers] == [202, 200, 200, 200], [each.text for each in answers]
    assert answers[0].json == answers[1].json and answers[3].json["rows"]
