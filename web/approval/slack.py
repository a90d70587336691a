"""Decisions by the buttons of messages on Slack.

Slack calls one address of the page, without a session. It stands before the guard, answers nothing but this address,
and accepts nothing that Slack did not sign within the last five minutes.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from fastapi import HTTPException
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from temporalio.service import RPCError

from runtime.notifications.slack import SlackApi, is_signed_by_slack
from sluice.approval.decisions import Decision
from sluice.contracts.run import RunStatus
from sluice.errors import BadEnvironment, InvalidPipeline, SluiceError
from sluice.notifications.slack import escaped
from sluice.notifications.slack_buttons import SlackDecision, missing_reason, read_slack_decision, reason_form
from sluice.notifications.slack_people import parse_slack_people
from sluice.roles import Role
from sluice.setting_groups import NotificationSettings
from web.access import Visitor
from web.approval.deciding import StatedDecision, check_waiting_report, decide
from web.form import refusal_sentence
from web.page import Page
from web.run.views import known_run

PATH = "/slack/actions"
"""The only address that Slack may call."""
_MAX_BYTES = 1_000_000
_BODY_WITHIN = 10.0
"""Time for the body of a request to arrive, in seconds."""
_LOG_EVERY = 600.0
"""Minimum time between two messages of the log about refused requests, in seconds."""
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_Action = Callable[[SlackDecision], Awaitable[None]]
_log = logging.getLogger("sluice.page")


def accepts_slack(settings: NotificationSettings) -> bool:
    """Return True if the settings allow decisions on Slack: its secret verifies requests, its token answers them."""
    return bool(settings.slack_signing_secret.strip() and settings.slack_token)


def read_slack_people(settings: NotificationSettings) -> dict[str, str]:
    """Return the names of people by their ids on Slack; none if no file is set.

    Raises:
        BadEnvironment: the file cannot be read.
    """
    file = settings.sluice_slack_people_file
    try:
        return parse_slack_people(Path(file).expanduser().read_text(encoding="utf-8"), file) if file else {}
    except (OSError, ValueError, RuntimeError) as error:
        raise BadEnvironment(f"SLUICE_SLACK_PEOPLE_FILE={file}: {error}") from error


class SlackActions:
    """ASGI middleware that answers Slack's requests, and passes all others on to the guard."""

    def __init__(self, app: ASGIApp, page: Page) -> None:
        self._app, self._page = app, page
        self._settings = page.settings.notifications
        self._slack = SlackApi(self._settings)
        self._logged_at: float | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of Slack; pass any other on."""
        if scope["type"] != "http" or (scope["method"], scope["path"]) != ("POST", PATH):
            await self._app(scope, receive, send)
            return
        response = await self._answer(Request(scope, receive))
        response.headers.update(_HEADERS)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            body = await asyncio.wait_for(_read_body(request), _BODY_WITHIN)
        except (asyncio.TimeoutError, ClientDisconnect):
            return PlainTextResponse("The request did not arrive.", 408)
        if body is None:
            return PlainTextResponse("The request is too long.", 413)
        headers, secret = request.headers, self._settings.slack_signing_secret
        times, signatures = headers.getlist("x-slack-request-timestamp"), headers.getlist("x-slack-signature")
        if not is_signed_by_slack(secret, body, times, signatures):
            self._log_refusal()
            return PlainTextResponse("This request has no valid and recent signature of Slack.", 401)
        try:
            decision = read_slack_decision(body)
        except InvalidPipeline as error:
            return PlainTextResponse(str(error), 400)
        return self._respond(decision) if decision else Response()

    def _log_refusal(self) -> None:
        """Log that a request had no valid signature: seldom, because anybody can send such requests."""
        now = time.monotonic()
        if self._logged_at is None or now - self._logged_at >= _LOG_EVERY:
            self._logged_at = now
            _log.warning(
                "%s refused a request without a valid and recent signature. If it was Slack's, SLACK_SIGNING_SECRET is "
                "not that of the app, or the clock of this machine is wrong",
                PATH,
            )

    def _respond(self, decision: SlackDecision) -> Response:
        """Return the response, which Slack expects within three seconds. The decision itself follows it."""
        if not decision.approve and decision.reason is None:
            return Response(background=BackgroundTask(self._carry_out, decision, self._ask_for_reason))
        if not decision.approve and not str(decision.reason).strip():
            return JSONResponse(missing_reason())
        closed = Response() if decision.approve else JSONResponse({"response_action": "clear"})
        closed.background = BackgroundTask(self._carry_out, decision, self._decide)
        return closed

    async def _carry_out(self, decision: SlackDecision, action: _Action) -> None:
        """Carry out what a person wants. The person alone sees why it was refused."""
        try:
            await action(decision)
        except Exception as error:
            text = f"{escaped(_why(error))} {self._link(decision)}".strip()
            await self._try_to_say("chat.postEphemeral", decision, text, user=decision.member)

    async def _decide(self, decision: SlackDecision) -> None:
        by = self._person(decision.member)
        lookup = await known_run(self._page, decision.shown.workflow_id, decision.shown.run_id)
        # The key of the page's owner does not sign: Slack says who decides, and the owner did not.
        stated = StatedDecision(decision.approve, reason=decision.reason or "", page_may_sign=False)

        def check(status: RunStatus) -> None:
            check_waiting_report(status, decision.shown.report, "this message was sent", "Read it again")

        counted = await decide(replace(self._page, visitor=Visitor(by, Role.APPROVER)), lookup, stated, check)
        await self._try_to_say("chat.postMessage", decision, _done(counted), thread_ts=decision.thread)

    async def _ask_for_reason(self, decision: SlackDecision) -> None:
        self._person(decision.member)
        view = reason_form(decision)
        await asyncio.to_thread(self._slack.call, "views.open", trigger_id=decision.trigger, view=view)

    def _person(self, member: str) -> str:
        """Return the name of a member of Slack. The file is read each time, so that a change needs no restart."""
        people = read_slack_people(self._settings)
        if member not in people:
            raise InvalidPipeline(
                f"your account on Slack belongs to nobody here. Ask the operator of Sluice to add the line `{member} "
                "YOUR_NAME` to the file SLUICE_SLACK_PEOPLE_FILE, or decide on the page"
            )
        return people[member]

    async def _try_to_say(self, method: str, decision: SlackDecision, text: str, **to: str) -> None:
        try:
            await asyncio.to_thread(self._slack.call, method, channel=decision.channel, text=text, **to)
        except SluiceError as error:  # the decision stands, or was refused, in any case
            _log.warning("an answer on Slack could not be sent: %s", error)

    def _link(self, decision: SlackDecision) -> str:
        shown = decision.shown
        address = self._page.installation.page_of_run(shown.workflow_id, shown.run_id)
        return f"<{address}|The run on the page>" if address else ""


async def _read_body(request: Request) -> bytes | None:
    """Return the body of a request, or None if it is too long."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BYTES:
            return None
    return bytes(body)


def _done(counted: Decision) -> str:
    what = "approved" if counted.approve else "rejected"
    reason = f": {counted.reason}" if counted.reason else ""
    return escaped(f"{counted.by} {what} {counted.audited_hash[:7]}{reason}")


def _why(error: Exception) -> str:
    """Return the sentence that tells a person why nothing was decided. The log has what is not for everybody."""
    if isinstance(error, HTTPException):
        return f"Nothing was decided: {error.detail}"
    if isinstance(error, InvalidPipeline):
        return refusal_sentence(error, "Nothing was decided")
    _log.warning("a decision on Slack failed: %s", error, exc_info=not isinstance(error, SluiceError | RPCError))
    if isinstance(error, RPCError) or (isinstance(error, SluiceError) and error.is_retryable):
        return "Nothing is known to be decided: a service does not answer now. Look at the run before you try again."
    return "Nothing was decided: the page had an error. Its log has the details."
