"""Examine the settings of the page and of the buttons on Slack for `doctor`, from the side of the command line."""

import socket
from urllib.parse import urlsplit

from sluice.contracts.examination import Finding, failed
from sluice.errors import SluiceError
from sluice.settings import Settings
from web.approval.slack import accepts_slack, read_slack_people
from web.proxy import read_proxy

_TIMEOUT = 5.0
_PORTS = {"http": 80, "https": 443}
_ANY_PORT = 8240
"""Port for checking the settings of a proxy. Nothing is served at it."""


def examine_page(settings: Settings) -> list[Finding]:
    """Return the findings about the page, its proxy, and decisions on Slack."""
    return [_address(settings), *_proxy(settings), *_slack(settings)]


def _address(settings: Settings) -> Finding:
    """Check the address of the page, to which messages link. A connection suffices: the page asks people to sign in."""
    address = settings.installation.sluice_page
    if not address:
        return Finding(part="page", state="off", detail="SLUICE_PAGE is not set: `make up` starts a page and sets it")
    try:
        parts = urlsplit(address)
        if not (parts.hostname and parts.scheme in _PORTS):
            return failed("page", f"SLUICE_PAGE={address} is not an address", "write it as in http://127.0.0.1:8240")
        with socket.create_connection((parts.hostname, parts.port or _PORTS[parts.scheme]), _TIMEOUT):
            return Finding(part="page", state="ok", detail=address)
    except (OSError, ValueError) as error:
        return Finding(
            part="page",
            state="warning",
            detail=f"{address} does not answer from here: {error}",
            remedy="start it by `make up` or `run_workflow.py page`, and set SLUICE_PAGE to its address",
        )


def _proxy(settings: Settings) -> list[Finding]:
    try:
        proxy = read_proxy(settings.page, settings.installation, settings.approval, _ANY_PORT)
    except SluiceError as error:
        return [failed("proxy of the page", str(error), "see docs/page-reference.md for the settings of a proxy")]
    if proxy is None:
        return []
    return [Finding(part="proxy of the page", state="ok", detail=f"it names people in {proxy.person_header}")]


def _slack(settings: Settings) -> list[Finding]:
    stated = settings.notifications
    if not stated.slack_signing_secret and not stated.sluice_slack_people_file:
        return []
    part, remedy = "buttons on Slack", "docs/notifications.md has their three settings"
    if not accepts_slack(stated):
        return [failed(part, "SLACK_SIGNING_SECRET or SLACK_TOKEN is missing, so the page refuses decisions", remedy)]
    try:
        people = read_slack_people(stated)
    except SluiceError as error:
        return [failed(part, str(error), remedy)]
    if not people:
        return [failed(part, "SLUICE_SLACK_PEOPLE_FILE lists no people, so the page refuses every decision", remedy)]
    return [Finding(part=part, state="ok", detail=f"{len(people)} of Slack's members may decide")]
