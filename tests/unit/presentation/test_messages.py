"""Messages to people: routes, services, and what a service that fails changes."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from activities.notifications.apprise_address import AppriseNotifier
from activities.notifications.notifier import LIMIT as ROUTE_LIMIT
from activities.notifications.notifier import RoutedNotifier
from activities.notifications.notify import NotifyActivities
from activities.notifications.open_notifier import open_notifier, read_routes
from sluice.contracts.arrivals import ZoneNotice
from sluice.contracts.registration import FailedRegistration, Registration
from sluice.contracts.run import Notification, RunResult
from sluice.contracts.run_request import Policy
from sluice.contracts.table_changes import TableChange
from sluice.errors import BadEnvironment, MessageRefused, ServiceUnavailable
from sluice.notifications.message import Message, message_of_landing_zone, message_of_registration, message_of_run
from sluice.notifications.routes import Route, parse_routes
from sluice.settings import Settings
from tests.harness.waiting import LIMIT
from workflows.activity_calls import ActivityCalls

FAILED = Message(event="failed", severity="error", pipeline="orders-eu", tables=["sales.orders"], title="it failed")


class FakeService:
    """A service that fails as often as it is told, and then takes messages."""

    def __init__(self, *failures: Exception) -> None:
        self.failures, self.titles = list(failures), list[str]()

    def send(self, message: Message) -> None:
        """Take a message."""
        if self.failures:
            raise self.failures.pop(0)
        self.titles.append(message.title)


def routed(services: dict[str, FakeService], *routes: Route, now: list[float] | None = None) -> RoutedNotifier:
    time = now or [0.0]
    return RoutedNotifier(routes or tuple(Route(to=name) for name in services), services.__getitem__, lambda: time[0])


# --- routes ---


@pytest.mark.parametrize(
    ("route", "takes"),
    [
        ({}, True),
        ({"events": "failed"}, True),
        ({"events": ["published", "waiting"]}, False),
        ({"severity": "error"}, True),
        ({"pipelines": "orders-*"}, True),
        ({"pipelines": ["orders", "payments-*"]}, False),
        ({"tables": "sales.*"}, True),
        ({"tables": "geo.*"}, False),
        ({"tables": "sales.*", "events": "published"}, False),
    ],
)
def test_a_message_takes_a_route_if_it_fulfils_each_key(route: dict[str, Any], takes: bool) -> None:
    assert Route.model_validate({"to": "slack", **route}).takes(FAILED) is takes


def test_a_mild_message_takes_no_route_of_severe_ones() -> None:
    published = FAILED.model_copy(update={"event": "published", "severity": "info"})
    assert not Route(to="slack", severity="warning").takes(published)


@pytest.mark.parametrize(
    ("failed", "route", "takes"),
    [
        ({"pipeline": "p", "tables": ["t.a", "t.b"]}, {"tables": "t.b"}, True),
        ({"pipeline": "p", "tables": ["t.a", "t.b"]}, {"tables": "t.a", "pipelines": "p"}, True),
        ({"tables": ["t.a"]}, {"tables": "t.a"}, True),
        ({"tables": ["t.a"]}, {"tables": "t.b"}, False),
        ({"tables": ["t.a"]}, {"pipelines": "*"}, False),
        ({"tables": ["t.a"]}, {"events": "registration"}, True),
    ],
)
def test_a_registration_of_a_table_takes_routes_by_its_table_alone(
    failed: dict[str, Any], route: dict[str, Any], takes: bool
) -> None:
    registration = Registration(target="lake", state="failed", reason="refused")
    message = message_of_registration(FailedRegistration(registration=registration, **failed))
    assert Route.model_validate({"to": "slack", **route}).takes(message) is takes


def test_variables_of_an_address_are_those_of_the_environment() -> None:
    (route,) = parse_routes("- {to: 'mailto://${USER_OF_MAIL}@x.org', quiet: 1h}", "r.yml", {"USER_OF_MAIL": "ana"})
    assert (route.to, route.quiet) == ("mailto://ana@x.org", 3600)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("to: slack", "r.yml must be a list of routes, such as"),
        ("[]", "r.yml must be a list of routes"),
        ("- {", "r.yml is not YAML"),
        ("- 5", "route 1: it: "),
        ("- {to: slack}\n- {to: slack, event: failed}", "route 2: event: .*Keys of a route: to, events"),
        ("- {to: slack, events: [ended]}", "route 1: events: 'ended' is not an event. Events are: waiting, published"),
        ("- {to: slack, severity: bad}", "route 1: severity: "),
        ("- {to: slack, quiet: soon}", "route 1: quiet: 'soon' is not a duration"),
        ("- {to: '${PAGER}'}", r"route 1: the variable PAGER of `to` is not set"),
    ],
)
def test_a_wrong_file_of_routes_is_one_sentence(text: str, message: str) -> None:
    with pytest.raises(BadEnvironment, match=message) as refused:
        parse_routes(text, "r.yml", {})
    assert "\n" not in str(refused.value)


def test_without_a_file_everything_goes_to_slack_if_it_is_set_up(tmp_path: Path) -> None:
    assert read_routes(Settings().notifications) == ()
    (route,) = read_routes(Settings.of(slack_token="xoxb-1", slack_channel="#loads").notifications)
    assert route.takes(FAILED) and route.to == "slack"
    with pytest.raises(BadEnvironment, match=r"SLUICE_NOTIFICATIONS_FILE=.*none.yml: No such file"):
        read_routes(Settings.of(sluice_notifications_file=str(tmp_path / "none.yml")).notifications)
    file = tmp_path / "routes.yml"
    file.write_text("- {to: slack}\n- {to: 'json://127.0.0.1:1', severity: error}\n")
    assert [route.to for route in read_routes(Settings.of(sluice_notifications_file=str(file)).notifications)] == [
        "json://127.0.0.1:1"
    ]


def test_a_run_is_asked_for_no_message_that_no_route_takes() -> None:
    ended = RunResult(run_id="r", workflow_id="w", pipeline="p", outcome="published")
    errors = NotifyActivities(routed({"a": FakeService()}, Route(to="a", severity="error")), "http://ui")
    assert not errors.can_notify(Notification(result=ended))
    assert errors.can_notify(Notification(result=ended.model_copy(update={"outcome": "failed"})))


# --- delivery ---


def test_a_service_that_fails_stops_no_other_and_no_message_arrives_twice() -> None:
    services = {"down": FakeService(ServiceUnavailable("away")), "up": FakeService()}
    notifier = routed(services)
    with pytest.raises(ServiceUnavailable, match="away"):
        notifier.send(FAILED, "activity 1")
    notifier.send(FAILED, "activity 1")
    assert services["down"].titles == services["up"].titles == ["it failed"]
    notifier.send(FAILED, "activity 2")
    assert services["up"].titles == ["it failed"] * 2, "another message of the same title"


class SlowService(FakeService):
    """A service that takes a message once an event has happened."""

    def __init__(self, event: threading.Event) -> None:
        super().__init__()
        self.event = event

    def send(self, message: Message) -> None:
        """Wait for the event, then take a message."""
        if not self.event.wait(LIMIT):
            raise ServiceUnavailable("the event did not happen")
        super().send(message)


class QuickService(FakeService):
    """A service that takes a message at once, and then sets an event."""

    def __init__(self) -> None:
        super().__init__()
        self.took = threading.Event()

    def send(self, message: Message) -> None:
        """Take a message."""
        super().send(message)
        self.took.set()


def test_a_slow_service_does_not_delay_the_others() -> None:
    quick = QuickService()
    slow = SlowService(quick.took)
    notifier = routed({"slow": slow, "quick": quick})
    notifier.limit = LIMIT
    notifier.send(FAILED, "1")
    assert slow.titles == quick.titles == ["it failed"]


def test_a_service_that_takes_too_long_fails_and_its_late_delivery_is_not_repeated() -> None:
    answers = threading.Event()
    slow = SlowService(answers)
    notifier = routed({"mailto://me:secret@example.org": slow})
    notifier.limit = 0.01
    with pytest.raises(ServiceUnavailable, match=r"^mailto did not take the message within 0\.01 s$"):
        notifier.send(FAILED, "1")
    answers.set()
    notifier.limit = LIMIT
    notifier.send(FAILED, "1")
    assert slow.titles == ["it failed"]


def test_the_limit_of_a_route_is_less_than_the_time_of_its_activity() -> None:
    for call in (ActivityCalls.notify, ActivityCalls.notify_schedule, ActivityCalls.notify_landing_zone):
        assert call.timeout(Policy(), None) > ROUTE_LIMIT


def test_a_message_is_tried_again_if_any_service_may_take_it_later() -> None:
    services = {"a": FakeService(MessageRefused("no")), "b": FakeService(ServiceUnavailable("away"))}
    with pytest.raises(ServiceUnavailable):
        routed(services).send(FAILED, "1")


def test_a_quiet_route_does_not_repeat_itself() -> None:
    now, service = [0.0], FakeService()
    notifier = routed({"a": service}, Route(to="a", quiet=60), now=now)
    for number, now[0] in enumerate([0.0, 59.0, 61.0]):
        notifier.send(FAILED, str(number))
    other = FAILED.model_copy(update={"title": "another"})
    notifier.send(other, "4")
    assert service.titles == ["it failed", "it failed", "another"]


def test_each_run_that_waits_and_each_reason_is_sent_by_a_quiet_route() -> None:
    service = FakeService()
    notifier = routed({"a": service}, Route(to="a", quiet=60))
    result = RunResult(run_id="r", workflow_id="w", pipeline="p")
    failed = [result.model_copy(update={"outcome": "failed", "reason": why}) for why in ("disk", "disk", "key")]
    messages = [message_of_run(Notification(result=each), "") for each in failed]
    messages += [message_of_run(Notification(result=result, waiting_until="2026-12-01T10:00:00+00:00"), "")] * 2
    for number, message in enumerate(messages):
        notifier.send(message, str(number))
    assert service.titles == ["p: failed", "p: failed", "p waits for approval", "p waits for approval"]


def test_any_error_of_a_service_is_one_that_stops_no_other() -> None:
    services = {"a": FakeService(ValueError("key=secret")), "b": FakeService()}
    with pytest.raises(ServiceUnavailable, match="a service of messages failed: ValueError"):
        routed(services).send(FAILED, "1")
    assert services["b"].titles == ["it failed"]


def test_a_key_without_a_scheme_is_not_quoted() -> None:
    with pytest.raises(BadEnvironment) as refused:
        AppriseNotifier.open("secretsecret")
    assert "secret" not in str(refused.value)


# --- messages ---


def test_a_message_about_a_run_has_what_a_person_decides_by() -> None:
    result = RunResult(run_id="r", workflow_id="w-1", pipeline="p", branch="wap/p/1")
    result = result.model_copy(update={"tables": {"t.a": TableChange(operation="append", added_rows=3)}})
    waiting = message_of_run(Notification(result=result, waiting_until="2026-12-01T10:00:00+00:00"), "http://ui/w-1")
    assert (waiting.event, waiting.severity, waiting.tables) == ("waiting", "warning", ["t.a"])
    assert waiting.title == "p waits for approval" and "t.a: 3 inserted" in waiting.lines
    assert "`python run_workflow.py approve w-1`" in waiting.lines
    declared = Notification(result=result, tables=["t.b", "t.a"])
    assert message_of_run(declared, "").tables == ["t.a"], "the run did not change t.b"
    nothing = declared.model_copy(update={"result": result.model_copy(update={"tables": {}})})
    assert message_of_run(nothing, "").tables == ["t.a", "t.b"]
    published = message_of_run(Notification(result=result.model_copy(update={"outcome": "published"})), "")
    assert (published.event, published.severity) == ("published", "info")


def test_a_notice_is_one_line() -> None:
    notice = message_of_landing_zone(ZoneNotice(name="p", text="a file\nwas refused " + "x" * 5000))
    assert notice.title.startswith("arrivals of p: a file was refused x") and len(notice.title) == 2000


# --- Apprise ---


class _Receiver(BaseHTTPRequestHandler):
    received: list[dict[str, Any]]
    status = 200

    def do_POST(self) -> None:
        self.received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def receiver() -> Iterator[tuple[str, type[_Receiver]]]:
    handler = type("Receiver", (_Receiver,), {"received": []})
    server = HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"json://127.0.0.1:{server.server_address[1]}/hook", handler
    server.shutdown()
    server.server_close()


def test_apprise_brings_messages_to_a_webhook(receiver: tuple[str, type[_Receiver]], tmp_path: Path) -> None:
    address, handler = receiver
    file = tmp_path / "routes.yml"
    file.write_text(f"- {{to: '{address}', severity: error}}\n")
    notifier = open_notifier(Settings.of(sluice_notifications_file=str(file)).notifications)
    message = FAILED.model_copy(update={"lines": ["the disk is full"], "link": "http://ui/w"})
    notifier.send(message, "1")
    (sent,) = handler.received
    assert (sent["title"], sent["message"], sent["type"]) == ("it failed", "the disk is full\nhttp://ui/w", "failure")
    handler.status = 500
    with pytest.raises(ServiceUnavailable, match="did not accept the message"):
        notifier.send(message, "2")


def test_an_address_that_apprise_does_not_know_is_not_quoted() -> None:
    with pytest.raises(BadEnvironment, match="Apprise does not support addresses of this form: nothing://…") as refused:
        AppriseNotifier.open("nothing://secret@host")
    assert "secret" not in str(refused.value)
