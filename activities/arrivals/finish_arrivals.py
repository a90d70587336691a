"""Tag or move the loaded files of a landing zone."""

from dataclasses import dataclass

from temporalio import activity

from activities.run.source_progress import run_with_progress
from lakehouse.arrivals.finisher import ArrivalFinisher
from lakehouse.source_files import OnProgress
from runtime.pipeline.pipeline_input import pipeline_of_text
from sluice.contracts.arrivals import FinishArrivalsInput, FinishArrivalsResult
from sluice.errors import InvalidPipeline, ManifestUnreadable
from sluice.redaction import redacted


@dataclass(frozen=True)
class FinishArrivalsActivity:
    """The activity `finish_arrivals`. It writes to the landing zone, so the worker must have access to it."""

    finisher: ArrivalFinisher

    @activity.defn(name="finish_arrivals")
    async def finish_arrivals(self, input: FinishArrivalsInput) -> FinishArrivalsResult:
        """Tag or move loaded files. A later call tries again the files that cannot be tagged or moved now."""

        def work(on_progress: OnProgress) -> FinishArrivalsResult:
            return self.finisher.finish(pipeline_of_text(input.pipeline), input, on_progress)

        try:
            result = await run_with_progress(work, activity.heartbeat, "tagging or moving files that main contains")
        except (InvalidPipeline, ManifestUnreadable) as error:
            result = FinishArrivalsResult(failed=1, problem=str(error))
        return result.model_copy(update={"problem": redacted(result.problem)[:1000]})
