"""Webhooks and commands: their input, their possible answers, and the values that are never shown."""

import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from lakehouse.targets.command import run_command
from lakehouse.targets.webhook import send_event
from sluice.contracts.registration import PublicationEvent
from sluice.contracts.table_changes import TableChange
from sluice.errors import BadEnvironment, CommandFailed, RegistrationRefused, ServiceUnavailable
from sluice.registration.events import event_body, event_id, signed_headers, signing_key
from sluice.registration.target_kinds import CommandTarget, SecretSource, WebhookTarget
from tests.harness.http_receiver import HttpReceiver
from tests.harness.processes import wait_for

KEY = b"0123456789abcdef01234567"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
VARIABLES = {"HOOK": SECRET, "PATH": os.environ["PATH"], "SLACK_TOKEN": "xoxb-not-for-it", "REGION": "north"}
EVENT = PublicationEvent(
    run_id="r1",
    workflow_id="p-1",
    pipeline="p",
    published_at="2026-11-23T12:00:00+00:00",
    main_before="a",
    main_after="b",
    tables={"t.x": TableChange(operation="append", added_rows=2)},
)


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    receiver = HttpReceiver()
    yield receiver
    receiver.close()


def webhook(receiver: HttpReceiver, path: str = "/hooks/path-token-123") -> WebhookTarget:
    return WebhookTarget(kind="webhook", url=receiver.url + path, secret=SecretSource(env="HOOK"))


def command(*line: str, timeout: str = "30s", environment: tuple[str, ...] = ()) -> CommandTarget:
    return CommandTarget.model_validate(
        {"kind": "command", "command": [*line], "timeout": timeout, "environment": [*environment]}
    )


def test_the_event_is_a_cloud_event_and_the_same_each_time() -> None:
    body = event_body(EVENT, "here")
    event = json.loads(body)
    assert body == event_body(EVENT, "here")
    assert {"specversion", "id", "source", "type"} <= event.keys() and event["specversion"] == "1.0"
    assert (event["id"], event["source"], event["subject"]) == (event_id(EVENT), "urn:sluice:here", "p")
    assert event["data"]["tables"]["t.x"]["added_rows"] == 2
    assert event_id(EVENT) != event_id(EVENT.model_copy(update={"run_id": "r2"}))


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """The vector is from the convention's own libraries."""
    key = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = signed_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', key, 1614265330)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("secret", ["", "abc", "whsec_", "whsec_c2hvcnQ=", "whsec_!!!", base64.b64encode(KEY).decode()])
def test_a_secret_of_another_form_is_refused_and_not_quoted(secret: str) -> None:
    with pytest.raises(BadEnvironment) as refused:
        signing_key(secret)
    assert len(secret) < 8 or secret not in str(refused.value)


def test_a_receiver_can_verify_who_sent_it_and_when(receiver: HttpReceiver) -> None:
    event = EVENT.model_copy(update={"pipeline": "größe"})
    assert send_event(webhook(receiver), event, "here", VARIABLES).endswith("answered 204")
    (request,) = receiver.requests
    headers = request.headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
    expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert abs(time.time() - int(headers["webhook-timestamp"])) < 60
    assert headers["content-type"] == "application/cloudevents+json"
    assert headers["webhook-id"] == json.loads(request.body)["id"]


def test_a_second_try_has_the_same_id_and_body(receiver: HttpReceiver) -> None:
    receiver.answer = lambda number: 500 if number == 1 else 200
    with pytest.raises(ServiceUnavailable, match="answered 500"):
        send_event(webhook(receiver), EVENT, "here", VARIABLES)
    send_event(webhook(receiver), EVENT, "here", VARIABLES)
    first, second = receiver.requests
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(receiver: HttpReceiver, status: int) -> None:
    receiver.answer, receiver.more_headers = lambda number: status, {"Location": f"{receiver.url}/other"}
    with pytest.raises(ServiceUnavailable, match="redirects are not followed"):
        send_event(webhook(receiver), EVENT, "here", VARIABLES)
    assert len(receiver.requests) == 1


def test_gone_is_final_and_other_refusals_are_retried(receiver: HttpReceiver) -> None:
    receiver.answer = lambda number: 410
    with pytest.raises(RegistrationRefused, match="wants no more events"):
        send_event(webhook(receiver), EVENT, "here", VARIABLES)
    receiver.answer = lambda number: 404
    with pytest.raises(ServiceUnavailable):
        send_event(webhook(receiver), EVENT, "here", VARIABLES)


def test_no_message_holds_the_path_or_the_secret(receiver: HttpReceiver) -> None:
    target = webhook(receiver)
    receiver.close()
    with pytest.raises(ServiceUnavailable, match="does not answer") as refused:
        send_event(target, EVENT, "here", VARIABLES)
    assert "path-token" not in str(refused.value) and SECRET not in str(refused.value)
    assert refused.value.__suppress_context__


def test_a_command_gets_the_event_on_its_standard_input_and_no_secret_of_the_worker(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    program = (
        "import json, os, sys; json.dump({'event': json.load(sys.stdin), 'variables': dict(os.environ), "
        "'folder': os.listdir('.'), 'arguments': sys.argv[1:]}, open(sys.argv[1], 'w'))"
    )
    line = command("/usr/bin/env", "python3", "-c", program, str(out), "$HOME; rm -rf x", environment=("REGION",))
    assert run_command(line, EVENT, "here", VARIABLES) == "exit code 0"
    seen = json.loads(out.read_text())
    assert seen["event"] == json.loads(event_body(EVENT, "here"))
    assert seen["variables"]["REGION"] == "north" and "SLACK_TOKEN" not in seen["variables"]
    assert seen["folder"] == [] and seen["arguments"][1] == "$HOME; rm -rf x"


def test_a_failed_command_says_the_end_of_its_output_without_secrets() -> None:
    script = "seq 100000; echo 'password=hunter2hunter2'; echo the last line >&2; exit 3"
    with pytest.raises(CommandFailed, match=r"(?s)exit code 3.*the last line") as failed:
        run_command(command("/bin/sh", "-c", script), EVENT, "here", VARIABLES)
    assert "hunter2" not in str(failed.value) and len(str(failed.value)) < 700


def test_a_command_that_takes_too_long_is_killed_with_what_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 300 & echo $! > {pids}; echo $$ >> {pids}; sleep 300"
    began = time.monotonic()
    with pytest.raises(CommandFailed, match="longer than 3 s"):
        run_command(command("/bin/sh", "-c", script, timeout="3s"), EVENT, "here", VARIABLES)
    assert time.monotonic() - began < 200
    for pid in map(int, pids.read_text().split()):
        wait_for(partial(_has_ended, pid))


def _has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_command_that_reads_nothing_and_leaves_a_process_does_not_hold_the_worker(tmp_path: Path) -> None:
    large = EVENT.model_copy(update={"pipeline": "p" * 1_000_000})
    assert run_command(command("/bin/sh", "-c", "sleep 300 & exit 0"), large, "here", VARIABLES) == "exit code 0"


def test_a_command_that_cannot_be_started_is_not_retried(tmp_path: Path) -> None:
    with pytest.raises(BadEnvironment, match="announce cannot be started: No such file"):
        run_command(command(str(tmp_path / "announce")), EVENT, "here", VARIABLES)
