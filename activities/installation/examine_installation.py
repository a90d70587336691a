"""Check the parts that a worker needs except Spark, such as catalog, lake, tokens, approvers, Slack and targets."""

import os
import stat
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from pyiceberg.io import load_file_io
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from temporalio import activity

from activities.approval.verify_decision import read_approvers
from activities.installation.examinations import NeedsRemedy, examine
from activities.installation.examine_targets import examine_targets
from activities.lineage.lineage_client import examine_receiver
from activities.notifications.notifier import RoutedNotifier
from activities.notifications.open_notifier import read_routes
from lakehouse.catalog import BranchCatalog
from lakehouse.open_catalog import catalog_address, token_files
from sluice.approval.required import parse_approval_rules
from sluice.contracts.examination import Examination, ExamineInstallationInput, Finding
from sluice.errors import BadEnvironment, SluiceError
from sluice.publishing.capabilities import describe_capabilities
from sluice.registration.targets import NO_TARGETS, Targets
from sluice.settings import Settings

_BRANCH = "sluice/examination-"
"""Prefix of the name of the branch that the check creates and deletes."""


@dataclass(frozen=True)
class ExamineInstallationActivity:
    """The activity `examine_installation`. Needs the settings, the catalog, FileIO properties, and the notifier."""

    settings: Settings
    catalog: BranchCatalog
    io: Mapping[str, str]
    notifier: RoutedNotifier
    """The notifier of this worker."""
    targets: Targets = NO_TARGETS
    folder: Path = field(default_factory=Path.cwd)
    """The folder of this worker, with its `.env`."""

    @activity.defn(name="examine_installation")
    def examine_installation(self, input: ExamineInstallationInput) -> Examination:
        """Check each part that this worker needs. A problem of one part does not stop the other checks."""
        return examine(
            {
                "settings": self._settings_file,
                "catalog": self._catalog,
                "branches": self._branches,
                "transactions": self._transactions,
                "tokens": self._tokens,
                "lake": self._lake,
                "approvals": self._approvals,
                "encryption": self._encryption,
                "Slack": self._slack,
                "routes": self._routes,
                "OpenLineage": lambda: examine_receiver(self.settings.lineage),
                "targets": lambda: examine_targets(self.targets, self.settings.storage.lake),
            }
        )

    def _settings_file(self) -> list[Finding]:
        """Check that `.env` has not changed since this process started and read it."""
        started = psutil.Process().create_time()
        try:
            changed = (self.folder / ".env").stat().st_mtime
        except OSError:
            return []
        if changed <= started:
            return []
        detail = f"{self.folder / '.env'} changed after this worker started; the worker still uses the earlier settings"
        remedy = "restart this worker; in a local stack, run `make down` and `make up`"
        return [Finding(part="worker", state="warning", detail=detail, remedy=remedy)]

    def _catalog(self) -> Finding:
        try:
            head = self.catalog.head(self.catalog.main)
        except SluiceError:
            raise
        except Exception as error:  # another service may answer at this address
            address = catalog_address(self.settings)
            raise NeedsRemedy(
                f"the service at {address} does not answer as the catalog: {type(error).__name__}: {error}",
                "set the address of the catalog that CATALOG names (docs/catalogs.md)",
            ) from error
        capabilities = describe_capabilities(self.catalog.capabilities)
        detail = f"{catalog_address(self.settings)}, {self.catalog.main} at {head[:12]}: {capabilities}"
        return Finding(part="catalog", state="ok", detail=detail)

    def _branches(self) -> Finding:
        """Create and delete a branch, as every run does. Delete branches that an interrupted check left, too."""
        for left in self.catalog.list_branches(_BRANCH):
            self.catalog.delete_branch(left.name)
        name = _BRANCH + uuid.uuid4().hex[:12]
        self.catalog.create_branch(name, self.catalog.head(self.catalog.main))
        self.catalog.delete_branch(name)
        return Finding(part="branches", state="ok", detail="a branch was created and deleted")

    def _transactions(self) -> list[Finding]:
        """Try a commit to two scratch tables, if the catalog needs this check."""
        try:
            detail = self.catalog.probe()
        except OSError as error:
            remedy = "set WAREHOUSE to a location that this worker may write; the part `lake` checks it"
            raise NeedsRemedy(f"no scratch table can be written: {error}", remedy) from error
        return [Finding(part="transactions", state="ok", detail=detail)] if detail else []

    def _tokens(self) -> list[Finding]:
        files = token_files(self.settings.catalog)
        if not files:
            detail = "each Spark job uses a private catalog, and has no credentials of this one"
            return [Finding(part="tokens", state="ok", detail=detail)]
        remedy = (
            f"configure the catalog to require tokens, and set {' and '.join(files)}; "
            "the token of jobs must not allow changes of main"
        )
        if not any(files.values()):
            what = "the worker and its Spark jobs use the catalog without tokens, so a job may change main"
            return [Finding(part="tokens", state="warning", detail=what, remedy=remedy)]
        if len({*files.values()}) < len(files):
            what = "the worker and its Spark jobs use the same token, so a job may change main"
            return [Finding(part="tokens", state="warning", detail=what, remedy=remedy)]
        return [_token(name, Path(file).expanduser()) for name, file in files.items()]

    def _lake(self) -> Finding:
        """Write a file, read it and delete it."""
        lake = self.settings.storage.lake.rstrip("/")
        path = f"{lake}/.sluice-examination-{uuid.uuid4().hex}"
        io = load_file_io(dict(self.io), lake)
        try:
            with io.new_output(path).create() as file:
                file.write(b"sluice")
            with io.new_input(path).open() as written:
                is_whole = written.read() == b"sluice"
        except Exception as error:
            remedy = (
                "set WAREHOUSE to a location that this worker may write, and credentials where the AWS SDKs find them"
            )
            raise NeedsRemedy(f"{lake} cannot be written and read: {error}", remedy) from error
        finally:
            with suppress(Exception):
                io.delete(path)
        if not is_whole:
            raise NeedsRemedy(f"{lake} returned other content than the worker wrote", "check the object store")
        return Finding(part="lake", state="ok", detail=f"{lake}: a file was written, read and deleted")

    def _approvals(self) -> Finding:
        approvers = read_approvers(self.settings.approval.sluice_approvers_file)
        rules = parse_approval_rules(self.settings.approval.sluice_require_approval)
        if approvers is None and rules:
            what = "SLUICE_REQUIRE_APPROVAL without SLUICE_APPROVERS_FILE: anybody may approve under any name"
            remedy = "list the approvers and their keys in a file, and set SLUICE_APPROVERS_FILE to it"
            return Finding(part="approvals", state="warning", detail=what, remedy=remedy)
        if approvers is None:
            return Finding(part="approvals", state="off", detail="decisions need no signature: no approvers are listed")
        if not approvers.keys:
            raise NeedsRemedy("the file of approvers is empty, so no run can be approved", "add a name and a key to it")
        return Finding(part="approvals", state="ok", detail=f"approvers: {', '.join(sorted(approvers.keys))}")

    def _encryption(self) -> Finding:
        if not self.settings.encryption.sluice_codec_key_file:
            return Finding(part="encryption", state="off", detail="what Temporal stores is not encrypted")
        return Finding(part="encryption", state="ok", detail="what Temporal stores is encrypted by this worker's keys")

    def _routes(self) -> Finding:
        """Check that this worker can open each service of its routes, and that the file of routes has not changed."""
        if not self.settings.notifications.sluice_notifications_file:
            return Finding(part="routes", state="off", detail="SLUICE_NOTIFICATIONS_FILE is not set")
        for route in self.notifier.routes:
            self.notifier.service(route.to)
        services = ", ".join(route.service for route in self.notifier.routes)
        if change := self._change_of_routes():
            used = f"this worker uses the routes from its start: messages go to {services or 'nobody'}"
            what, remedy = change
            return Finding(part="routes", state="warning", detail=f"{what}; {used}", remedy=remedy)
        if not services:
            raise NeedsRemedy("no route can be used: they lead to Slack", "set SLACK_TOKEN and SLACK_CHANNEL")
        return Finding(part="routes", state="ok", detail=f"messages go to {services}")

    def _change_of_routes(self) -> tuple[str, str] | None:
        """Return the problem and its remedy if a worker that starts now would not use the routes of this worker."""
        try:
            changed = read_routes(self.settings.notifications) != tuple(self.notifier.routes)
        except BadEnvironment as error:
            return f"the next worker cannot start: {error}", "correct the file, then restart this worker"
        file = self.settings.notifications.sluice_notifications_file
        return (f"{file} changed", "restart this worker") if changed else None

    def _slack(self) -> Finding:
        settings = self.settings.notifications
        if not settings.slack_token and not settings.slack_channel:
            return Finding(part="Slack", state="off", detail="SLACK_TOKEN and SLACK_CHANNEL are not set")
        if not (settings.slack_token and settings.slack_channel):
            present, missing = "SLACK_TOKEN", "SLACK_CHANNEL"
            if not settings.slack_token:
                present, missing = missing, present
            raise NeedsRemedy(f"no messages are sent: {missing} is not set", f"set {missing}, or remove {present}")
        client = WebClient(token=settings.slack_token, base_url=settings.slack_api_url, timeout=10)
        try:
            answer = client.auth_test()
        except SlackApiError as error:
            why = str(error.response.get("error", "unknown"))
            raise NeedsRemedy(f"Slack refuses: {why}", "set SLACK_TOKEN to a bot token with chat:write") from None
        except (SlackClientError, OSError) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            raise NeedsRemedy(
                f"{settings.slack_api_url} does not answer: {reason}", "check the network and SLACK_API_URL"
            ) from None
        return Finding(part="Slack", state="ok", detail=f"{answer.get('user')} writes to {settings.slack_channel}")


def _token(name: str, file: Path) -> Finding:
    """Check that this worker can read the file of a token, and that other users cannot.

    Raises:
        NeedsRemedy: the file cannot be read, or is empty.
    """
    try:
        is_empty, mode = not file.read_text().strip(), file.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise NeedsRemedy(f"{name}={file}: {why}", f"set {name} to a file that this worker can read") from error
    if is_empty:
        raise NeedsRemedy(f"{name}={file} is empty", "write the token into it")
    if mode & (stat.S_IRGRP | stat.S_IROTH) and os.name == "posix":
        detail = f"{file} can be read by other users"
        return Finding(part="tokens", state="warning", detail=detail, remedy=f"chmod 600 {file}")
    return Finding(part="tokens", state="ok", detail=f"{name} contains a token")
