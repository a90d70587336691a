"""The clients and stores of one catalog that several activities share, each created when it is first needed."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from temporalio.client import Client

from activities.approval.require_approval import ApprovalPolicy
from activities.notifications.notifier import RoutedNotifier
from activities.notifications.notify import NotifyActivities
from activities.registration.start_registrations import StartRegistrationsActivity
from activities.run.running_workflows import RunningWorkflows
from engine.queries.runner import QueryRunner
from engine.scan import SamplingEngine
from engine.scan_engines import in_process_engines
from lakehouse.arrivals.batch_store import BatchStore
from lakehouse.arrivals.collector import ArrivalCollector
from lakehouse.audit.audited_tables import AuditedTables
from lakehouse.audit.report_store import ReportStore
from lakehouse.audit.results_table import AuditResultsTable
from lakehouse.catalog import BranchCatalog
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.input.manifests import InputManifests
from lakehouse.lake import row_files
from sluice.approval.required import parse_approval_rules
from sluice.registration.targets import Targets
from sluice.settings import Settings

Activity = Callable[..., Any]

log = logging.getLogger("sluice.worker")


@dataclass(frozen=True)
class Shared:
    """The clients and stores of activities on the control queue."""

    client: Client
    settings: Settings
    catalog: BranchCatalog
    io: dict[str, str]
    """Iceberg's properties for reading the lake."""
    reports: ReportStore
    notifier: RoutedNotifier
    """The routes of messages, the same for every branch that runs publish to."""
    targets: Targets
    """The targets of registrations, read once for all these branches."""

    @property
    def installation(self) -> str:
        """Id of the installation, which owns the branches and workflows."""
        return self.settings.installation.sluice_installation

    @cached_property
    def tables(self) -> AuditedTables:
        """Loader of audited tables."""
        return AuditedTables(self.catalog, self.io)

    @cached_property
    def engines(self) -> Sequence[SamplingEngine]:
        """The scan engines in this process."""
        return in_process_engines(self.settings.scan, self.io)

    @cached_property
    def queries(self) -> QueryRunner:
        """Runner of people's queries, each in a process of its own."""
        scratch = self.settings.storage.runs / "duckdb"
        return QueryRunner(self.settings.scan.sluice_scan_memory, scratch, self.io, reader=row_files.__name__)

    @cached_property
    def policy(self) -> ApprovalPolicy:
        """Policy from the settings: the approvals that runs need."""
        approvers = self.settings.approval.sluice_approvers_file
        is_main = self.catalog.main == self.settings.catalog.sluice_main
        rules = parse_approval_rules(self.settings.approval.sluice_require_approval)
        policy = ApprovalPolicy(self.catalog, approvers, rules, self.installation, self.io, is_main)
        if policy.rules and not approvers:
            log.warning("SLUICE_REQUIRE_APPROVAL without SLUICE_APPROVERS_FILE: anybody may approve under any name")
        return policy

    @cached_property
    def results(self) -> AuditResultsTable:
        """The table of the verdicts of all runs."""
        return AuditResultsTable(self.catalog, self.settings.storage.lake, self.io)

    @cached_property
    def loaded_files(self) -> LoadedFiles:
        """Index of the files that are loaded into tables."""
        manifests = InputManifests(self.settings.storage.lake, self.io)
        return LoadedFiles(self.catalog, manifests, self.settings.storage.sluice_home.absolute())

    @cached_property
    def batches(self) -> BatchStore:
        """Store for the batches of landing zones."""
        return BatchStore(self.settings.storage.lake, self.io)

    @cached_property
    def collector(self) -> ArrivalCollector:
        """Collector that lists the files in landing zones."""
        return ArrivalCollector(
            self.loaded_files, self.batches, self.settings.storage.sluice_home.absolute(), self.installation
        )

    @cached_property
    def running(self) -> RunningWorkflows:
        """Client for finding running workflows in Temporal, from any thread."""
        return RunningWorkflows(self.client, asyncio.get_running_loop())

    @cached_property
    def notify(self) -> NotifyActivities:
        """Activities that send messages to people."""
        page = self.settings.installation.sluice_page
        web_ui = f"{self.settings.installation.temporal_ui}/namespaces/{self.client.namespace}/workflows"
        return NotifyActivities(self.notifier, f"{page}/runs" if page else web_ui)

    @cached_property
    def registrations(self) -> StartRegistrationsActivity:
        """Activity that starts the registrations of a publication."""
        return StartRegistrationsActivity(
            self.client, self.targets, self.installation, self.settings.installation.sluice_task_queue
        )
