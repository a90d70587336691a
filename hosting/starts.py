"""The activities of schedules, backfills and landing zones, which start runs."""

from activities.arrivals.collect_arrivals import CollectArrivalsActivity
from activities.arrivals.finish_arrivals import FinishArrivalsActivity
from activities.arrivals.read_batch import ReadBatchActivity
from activities.arrivals.report_arrival_runs import ReportArrivalRunsActivity
from activities.arrivals.split_batch import SplitBatchActivity
from activities.backfills.collect_backfill import CollectBackfillActivity
from activities.backfills.discard_backfill import DiscardBackfillActivity
from activities.backfills.open_backfill import OpenBackfillActivity
from activities.run.cancel_started_runs import CancelStartedRunsActivity
from activities.run.find_ended_workflows import FindEndedWorkflowsActivity
from activities.run.find_run_end import FindRunEndActivity
from activities.run.prepare_run import PrepareRunActivity
from activities.schedules.inspect_schedule import InspectScheduleActivity
from activities.schedules.pause_schedule import PauseScheduleActivity
from hosting.shared import Activity, Shared
from lakehouse.arrivals.finisher import ArrivalFinisher


def start_activities(shared: Shared) -> list[Activity]:
    """Return the activities of schedules and backfills, and of the runs that they start."""
    catalog, settings, installation = shared.catalog, shared.settings, shared.installation
    return [
        OpenBackfillActivity(catalog, installation).open_backfill,
        DiscardBackfillActivity(catalog, installation).discard_backfill,
        CollectBackfillActivity(catalog, shared.io, shared.loaded_files.manifests, installation).collect_backfill,
        PrepareRunActivity(shared.client, settings, shared.batches).prepare_run,
        FindRunEndActivity(shared.client).find_run_end,
        CancelStartedRunsActivity(shared.client).cancel_started_runs,
        InspectScheduleActivity(shared.client).inspect_schedule,
        PauseScheduleActivity(shared.client).pause_schedule,
        shared.notify.notify_schedule,
    ]


def arrival_activities(shared: Shared) -> list[Activity]:
    """Return the activities of landing zones."""
    settings = shared.settings
    return [
        CollectArrivalsActivity(shared.collector).collect_arrivals,
        FinishArrivalsActivity(ArrivalFinisher(shared.collector)).finish_arrivals,
        ReadBatchActivity(shared.batches).read_batch,
        SplitBatchActivity(shared.batches).split_batch,
        ReportArrivalRunsActivity(
            shared.client,
            shared.installation,
            settings.installation.sluice_task_queue,
            settings.arrivals.sluice_arrival_runs,
        ).report_arrival_runs,
        FindEndedWorkflowsActivity(shared.running).find_ended_workflows,
        shared.notify.notify_landing_zone,
    ]
