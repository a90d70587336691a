"""The activities of runs."""

from activities.approval.find_waivers import FindWaiversActivity
from activities.approval.require_approval import RequireApprovalActivity
from activities.approval.verify_decision import VerifyDecisionActivity
from activities.audit.audit_branch import AuditBranchActivity
from activities.audit.scan_files import ScanFilesActivity
from activities.audit.scan_tables import TableScanner
from activities.lineage.emit_lineage import EmitLineageActivity
from activities.publishing.confirm_publication import ConfirmPublicationActivity
from activities.publishing.find_conflicts import FindConflictsActivity
from activities.publishing.merge_priority import MergePriority
from activities.publishing.merge_queue import MergeQueueActivity
from activities.publishing.publish_branch import PublishBranchActivity
from activities.publishing.rebase_branch import RebaseBranchActivity
from activities.publishing.restore_tables import RestoreTablesActivity
from activities.quarantine.discard_quarantine import DiscardQuarantineActivity
from activities.quarantine.manage_quarantine import ManageQuarantineActivity
from activities.quarantine.quarantine_branch import QuarantineBranchActivity
from activities.quarantine.reap_branches import ReapBranchesActivity
from activities.quarantine.resume_branch import ResumeBranchActivity
from activities.run.checkpoint import checkpoint
from activities.run.discard_branch import DiscardBranchActivity
from activities.run.open_branch import OpenBranchActivity
from activities.run.record_run import RecordRunActivity
from activities.run.select_input import SelectInputActivity
from activities.run.verify_write import VerifyWriteActivity
from hosting.shared import Activity, Shared
from lakehouse.open_catalog import catalog_address


def branch_activities(shared: Shared) -> list[Activity]:
    """Return a run's activities that change branches and main, or find out the result of such a change."""
    catalog, io, settings, installation = shared.catalog, shared.io, shared.settings, shared.installation
    client, task_queue = shared.client, settings.installation.sluice_task_queue
    merge_queue = MergeQueueActivity(client, installation, catalog.main, task_queue)
    priority = MergePriority(client, shared.running.loop, installation, catalog.main)
    return [
        OpenBranchActivity(
            catalog, io, installation, shared.loaded_files, shared.targets, settings.storage.lake
        ).open_branch,
        SelectInputActivity(catalog, shared.loaded_files, installation).select_input,
        VerifyWriteActivity(catalog, io).verify_write,
        FindConflictsActivity(catalog).find_conflicts,
        RebaseBranchActivity(catalog, io, installation, loaded_files=shared.loaded_files).rebase_branch,
        ResumeBranchActivity(catalog, io, installation, loaded_files=shared.loaded_files).resume_branch,
        RestoreTablesActivity(catalog, io, installation).restore_tables,
        merge_queue.acquire_merge_slot,
        merge_queue.release_merge_slot,
        PublishBranchActivity(catalog, shared.policy, io, shared.loaded_files, priority).publish_branch,
        ConfirmPublicationActivity(catalog).confirm_publication,
        DiscardBranchActivity(catalog).discard_branch,
        DiscardQuarantineActivity(catalog).discard_quarantine,
        QuarantineBranchActivity(catalog, installation, io).quarantine_branch,
        ManageQuarantineActivity(catalog, shared.running, installation).manage_quarantine,
        ReapBranchesActivity(catalog, io, shared.running, installation).reap_branches,
    ]


def audit_activities(shared: Shared) -> list[Activity]:
    """Return the activities that audit, verify approvals, record runs, and send notifications and lineage."""
    catalog, settings = shared.catalog, shared.settings
    name, address = settings.catalog.catalog_name, catalog_address(settings)
    lineage = EmitLineageActivity(settings.lineage, catalog, shared.io, name, address)
    return [
        AuditBranchActivity(shared.tables, shared.reports, settings.storage, shared.engines).audit_branch,
        ScanFilesActivity(TableScanner(shared.tables, shared.reports, settings.storage), shared.engines).scan_files,
        VerifyDecisionActivity(settings.approval.sluice_approvers_file).verify_decision,
        RequireApprovalActivity(shared.policy).require_approval,
        FindWaiversActivity(shared.policy).find_waivers,
        RecordRunActivity(catalog, shared.reports, shared.results).record_run,
        checkpoint,
        shared.notify.can_notify,
        shared.notify.notify,
        lineage.can_emit_lineage,
        lineage.emit_lineage,
    ]
