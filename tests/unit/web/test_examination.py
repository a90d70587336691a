"""The findings of `doctor` on the page and on the buttons on Slack, each setting broken once."""

import socket
from pathlib import Path
from typing import Any

import pytest

from sluice.settings import Settings
from web.examination import examine_page

_PROXY = {
    "sluice_page_person_header": "X-Forwarded-User",
    "sluice_page_secret_header": "X-Sluice-Proxy",
    "sluice_page": "http://page.localhost:1",
}
_SLACK = {"slack_signing_secret": "secret", "slack_token": "xoxb-1"}


def _findings(home: Path, **stated: Any) -> dict[str, tuple[str, str]]:
    settings = Settings.of(sluice_home=home, **{"sluice_page": "http://127.0.0.1:1", **stated})
    return {each.part: (each.state, f"{each.detail} {each.remedy}") for each in examine_page(settings)}


def test_the_address_must_answer(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert _findings(tmp_path, sluice_page=address) == {"page": ("ok", f"{address} ")}
    state, text = _findings(tmp_path)["page"]
    assert state == "warning" and "does not answer from here" in text and "SLUICE_PAGE" in text
    state, text = _findings(tmp_path, sluice_page="page.example.org")["page"]
    assert state == "failed" and "is not an address" in text
    assert _findings(tmp_path, sluice_page="")["page"][0] == "off", "a stack that is down has no page"


def test_a_proxy_needs_all_of_its_settings(tmp_path: Path) -> None:
    state, text = _findings(tmp_path, **_PROXY)["proxy of the page"]
    assert state == "failed" and "needs a proof: set SLUICE_PAGE_SECRET_HEADER" in text
    secret = tmp_path / "secret"
    secret.write_text("s" * 64)
    stated = {**_PROXY, "sluice_page_secret_file": str(secret)}
    assert _findings(tmp_path, **stated)["proxy of the page"] == ("ok", "it names people in X-Forwarded-User ")


@pytest.mark.parametrize(
    ("stated", "people", "expected"),
    [
        ({"slack_signing_secret": "secret"}, "U012AB3CD ana", "SLACK_TOKEN is missing"),
        (_SLACK, None, "lists no people"),
        (_SLACK, "", "lists no people"),
        (_SLACK, "ana", "people:1: write the id of a member"),
    ],
)
def test_buttons_on_slack_need_all_of_their_settings(
    tmp_path: Path, stated: dict[str, str], people: str | None, expected: str
) -> None:
    file = tmp_path / "people"
    if people is not None:
        file.write_text(people)
        stated = {**stated, "sluice_slack_people_file": str(file)}
    state, text = _findings(tmp_path, **stated)["buttons on Slack"]
    assert state == "failed" and expected in text


def test_buttons_on_slack_that_are_set_up(tmp_path: Path) -> None:
    file = tmp_path / "people"
    file.write_text("U012AB3CD ana\n")
    findings = _findings(tmp_path, **_SLACK, sluice_slack_people_file=str(file))
    assert findings["buttons on Slack"] == ("ok", "1 of Slack's members may decide ")
