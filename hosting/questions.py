"""The activities that answer questions of the command line about the lake."""

from activities.arrivals.list_arrivals import ListArrivalsActivity
from activities.arrivals.plan_load import PlanLoadActivity
from activities.installation.examine_installation import ExamineInstallationActivity
from activities.lake.diff_tables import DiffTablesActivity
from activities.lake.list_files import ListFilesActivity
from activities.lake.query_audit_results import QueryAuditResultsActivity
from activities.lake.query_tables import QueryTablesActivity
from activities.publishing.plan_publish import PlanPublishActivity
from activities.publishing.plan_rollback import PlanRollbackActivity
from activities.quarantine.describe_quarantine import DescribeQuarantineActivity
from activities.quarantine.list_quarantine import ListQuarantineActivity
from activities.quarantine.plan_release import PlanReleaseActivity
from activities.quarantine.plan_requeue import PlanRequeueActivity
from hosting.shared import Activity, Shared


def question_activities(shared: Shared) -> list[Activity]:
    """Return the activities that plan and list, and change nothing."""
    catalog, io, settings, installation = shared.catalog, shared.io, shared.settings, shared.installation
    return [
        ListQuarantineActivity(catalog, io).list_quarantine,
        DescribeQuarantineActivity(catalog, io, shared.reports).describe_quarantine,
        PlanPublishActivity(catalog, io, shared.loaded_files).plan_publish,
        PlanReleaseActivity(catalog, installation, shared.loaded_files).plan_release,
        PlanRollbackActivity(catalog, io).plan_rollback,
        PlanRequeueActivity(catalog, io, settings.catalog.catalog_name).plan_requeue,
        QueryAuditResultsActivity(shared.results, shared.queries).query_audit_results,
        QueryTablesActivity(catalog, io, shared.queries).query_tables,
        DiffTablesActivity(catalog, io, shared.queries).diff_tables,
        ListFilesActivity(catalog, shared.loaded_files).list_files,
        ListArrivalsActivity(shared.collector).list_arrivals,
        PlanLoadActivity(shared.collector).plan_load,
        ExamineInstallationActivity(settings, catalog, io, shared.notifier, shared.targets).examine_installation,
    ]
