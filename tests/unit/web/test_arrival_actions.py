"""Forms about batches that were kept out: what they do, once, and only to what the person saw."""

import re

import pytest

from sluice.contracts.zone_requests import BatchCommand, SplitBatch
from tests.harness.asgi import Answer
from tests.harness.lake_on_page import button, form, notice
from tests.harness.page import behind_proxy, browser, session
from tests.harness.zone_on_page import ZoneClient

ZONE, CONFLICT = "/arrivals/p", 409


async def shown(client: ZoneClient) -> Answer:
    answer = await browser(client).get(ZONE)
    assert answer.status == 200, answer.text
    return answer


async def send(client: ZoneClient, action: str, fields: dict[str, str]) -> Answer:
    return await browser(client).post_form(f"{ZONE}/{action}", {**fields})


@pytest.mark.parametrize(
    ("action", "request_", "states"),
    [
        (
            "retry",
            BatchCommand(action="retry", batch="b1", by="ana", keeps_named=True),
            {"b1": "waiting", "b2": "kept out"},
        ),
        (
            "set-aside",
            BatchCommand(action="set aside", batch="b1", by="ana", keeps_named=True),
            {"b1": "set aside", "b2": "kept out"},
        ),
        ("split", SplitBatch(batch="b1", by="ana"), {"b1x": "waiting", "b1y": "waiting", "b2": "kept out"}),
    ],
)
async def test_a_batch_is_decided_once_in_the_name_of_the_person(
    action: str, request_: BatchCommand | SplitBatch, states: dict[str, str]
) -> None:
    client = ZoneClient()
    fields = form(await shown(client), action)
    answer = await send(client, action, fields)
    assert (answer.status, answer.headers["location"]) == (303, ZONE)
    assert client.states() == states
    (sent,) = client.requests
    assert sent == request_
    again = await send(client, action, fields)
    assert again.status == CONFLICT and notice(again).startswith("Nothing was done: ")
    assert client.requests == [sent], "a second click changes nothing"


async def test_the_page_says_what_each_action_will_do() -> None:
    text = (await shown(ZoneClient())).text
    assert "A new run loads the files of the batch again." in text
    assert "The zone never loads these files while it is deployed." in text
    assert 'href="/runs/p-b1/run-of-b1"' in text and "arrivals p --retry b1" in text
    assert len(re.findall(r'<button [^>]*>Retry <code class="hash">b[12]</code>', text)) == 2


async def test_a_batch_that_was_tried_since_is_not_decided() -> None:
    """Another tab retried it, and its run was kept out again for another reason."""
    client = ZoneClient()
    fields = form(await shown(client), "set-aside")
    client.held.update("b1", run_id="later", tries=2, reason="another reason")
    answer = await send(client, "set-aside", fields)
    assert answer.status == CONFLICT and not client.requests
    assert "its run ended again since this page was opened" in notice(answer) and "another reason" in answer.text


async def test_an_unknown_batch_and_a_form_without_its_state_do_nothing() -> None:
    client = ZoneClient()
    for fields in ({"batch": "nine", "shown": "x"}, {"batch": "b1"}):
        answer = await send(client, "retry", {"form_token": session().form_token("ana"), **fields})
        assert answer.status == CONFLICT and not client.requests


@pytest.mark.parametrize("write", ["mode: overwrite", "mode: overwrite_partitions"])
async def test_a_batch_is_not_split_if_the_second_half_would_replace_the_first(write: str) -> None:
    client = ZoneClient(write)
    answer = await shown(client)
    assert "disabled" in button(answer, "split") and "cannot be split" in answer.text and "--split" not in answer.text
    refused = await send(client, "split", form(answer, "split"))
    assert refused.status == CONFLICT and not client.requests and "cannot be split" in notice(refused)


async def test_a_batch_of_one_file_is_not_split() -> None:
    client = ZoneClient()
    client.held.update("b1", state="set aside")
    assert "disabled" in button(await shown(client), "split")


async def test_a_person_has_to_permit_that_older_rows_replace_younger_ones() -> None:
    client = ZoneClient()
    assert "over_younger" not in (await shown(client)).text
    client.held.update("b1", overtaken_by="b9")
    answer = await shown(client)
    assert answer.text.count('name="over_younger"') == 2, "to retry and to split"
    fields = form(answer, "retry")
    refused = await send(client, "retry", fields)
    assert refused.status == CONFLICT and "b9" in notice(refused) and not client.requests
    assert (await send(client, "retry", {**fields, "over_younger": "true"})).status == 303
    assert client.requests[0].over_younger


async def test_only_operators_decide() -> None:
    client = ZoneClient()
    for person in ("vera", "ana", "otto"):
        answer = await behind_proxy(client, person, installation="test").get(ZONE)
        for action in ("retry", "split", "set-aside"):
            assert ("disabled" in button(answer, action)) == (person != "otto")
        assert ("To retry a batch, you need the role operator" in answer.text) == (person != "otto")
