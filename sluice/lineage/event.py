"""Events of a run in the classes of OpenLineage's client, which state the version of each facet's schema.

Importing this module imports that client, which takes half a second of a worker's time. Only the code that sends
events imports it.
"""

from collections.abc import Mapping, Sequence

from openlineage.client.constants import __version__ as CLIENT_VERSION
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState, set_producer
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    JobFacet,
    RunFacet,
    data_quality_assertions_dataset,
    dataset_version_dataset,
    documentation_job,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    nominal_time_run,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
    sql_job,
    symlinks_dataset,
    tags_run,
    test_run,
)

from sluice import VERSION
from sluice.contracts.lineage import EmitLineageInput, LineageCheck, LineageTable
from sluice.lineage.datasets import TableDataset, dataset_name, source_dataset
from sluice.lineage.identity import lineage_run_id
from sluice.redaction import redacted

_SEVERITIES = {"fail": "error", "warn": "warn"}
"""OpenLineage's severity of a failed check: `error` blocks the publication, `warn` does not."""

set_producer(f"urn:sluice:{VERSION}")


def run_event(
    input: EmitLineageInput,
    namespace: str,
    catalog: str,
    read: Sequence[TableDataset] = (),
    published: Mapping[str, TableDataset] | None = None,
) -> RunEvent:
    """Return the event of a run.

    Args:
        namespace: the namespace of the job.
        catalog: the address of the catalog, in which tables have their names.
        read: the tables that the run read.
        published: the tables that the run published, by name, as far as they could be read.
    """
    known = published or {}
    listed = [(table, known[table.name]) for table in input.published if table.name in known]
    return RunEvent(
        eventTime=input.at,
        eventType=RunState[input.event],
        run=Run(lineage_run_id(input.run_ref.run_id), facets=_run_facets(input)),
        job=Job(namespace, input.run_ref.pipeline, facets=_job_facets(input)),
        inputs=[*_sources(input), *(_read_table(table, catalog) for table in read)],
        outputs=[_published_table(table, dataset, catalog, input.checks) for table, dataset in listed],
    )


def _run_facets(input: EmitLineageInput) -> dict[str, RunFacet]:
    facets: dict[str, RunFacet] = {
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
            version=VERSION, name="sluice", openlineageAdapterVersion=CLIENT_VERSION
        ),
        "tags": tags_run.TagsRunFacet(
            [tags_run.TagsRunFacetFields(name, value, "SLUICE") for name, value in input.tags.items()]
        ),
    }
    if parent := input.parent:
        facets["parent"] = parent_run.ParentRunFacet(
            run=parent_run.Run(parent.run_id), job=parent_run.Job(parent.namespace, parent.name)
        )
    if input.scheduled_at:
        facets["nominalTime"] = nominal_time_run.NominalTimeRunFacet(input.scheduled_at)
    if input.checks:
        facets["test"] = test_run.TestRunFacet([_test(check) for check in input.checks])
    if input.error:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(input.error, "python")
    return facets


def _job_facets(input: EmitLineageInput) -> dict[str, JobFacet]:
    facets: dict[str, JobFacet] = {
        "jobType": job_type_job.JobTypeJobFacet(processingType="BATCH", integration="SLUICE", jobType="PIPELINE")
    }
    if input.description:
        facets["documentation"] = documentation_job.DocumentationJobFacet(redacted(input.description))
    if input.sql:
        facets["sql"] = sql_job.SQLJobFacet(redacted(";\n".join(input.sql)), dialect="spark")
    return facets


def _sources(input: EmitLineageInput) -> list[InputDataset]:
    """Return the sources as datasets, one for each path. A pattern stands for its folder."""
    names = list(dict.fromkeys(map(source_dataset, input.sources)))
    facets: dict[str, InputDatasetFacet] = {}
    if len(names) == 1 and input.source_files is not None:  # the numbers are those of all paths together
        facets["inputStatistics"] = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            size=input.source_bytes, fileCount=input.source_files
        )
    return [InputDataset(each.namespace, each.name, inputFacets=facets) for each in names]


def _read_table(table: TableDataset, catalog: str) -> InputDataset:
    name = dataset_name(table.location)
    return InputDataset(name.namespace, name.name, facets=_table_facets(table, catalog))


def _published_table(
    table: LineageTable, dataset: TableDataset, catalog: str, checks: Sequence[LineageCheck]
) -> OutputDataset:
    name, facets = dataset_name(dataset.location), _table_facets(dataset, catalog)
    assertions = [_assertion(check) for check in checks if check.table == table.name]
    if assertions:
        # The specification derives this facet from those of inputs, and also shows it on datasets in general. Its form
        # is the same there.
        facets["dataQualityAssertions"] = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(  # type: ignore[assignment]
            assertions
        )
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=table.rows, size=table.bytes, fileCount=table.files
    )
    return OutputDataset(name.namespace, name.name, facets=facets, outputFacets={"outputStatistics": statistics})


def _table_facets(table: TableDataset, catalog: str) -> dict[str, DatasetFacet]:
    """Return the facets of one version of a table: its columns, its snapshot, and its name in the catalog."""
    fields = [
        schema_dataset.SchemaDatasetFacetFields(name, type, description or None, ordinal_position=position)
        for position, (name, type, description) in enumerate(table.columns, 1)
    ]
    facets: dict[str, DatasetFacet] = {
        "schema": schema_dataset.SchemaDatasetFacet(fields),
        "symlinks": symlinks_dataset.SymlinksDatasetFacet([symlinks_dataset.Identifier(catalog, table.table, "TABLE")]),
    }
    if table.snapshot_id is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(str(table.snapshot_id))
    return facets


def _test(check: LineageCheck) -> test_run.TestExecution:
    return test_run.TestExecution(
        name=f"{check.table}: {check.title}",
        status="pass" if check.passed else "fail",
        severity=_SEVERITIES[check.severity],
        type=check.kind,
        expected=check.expected or None,
        actual=check.observed or None,
        params={**check.more, "columns": check.columns} if check.columns else check.more,
    )


def _assertion(check: LineageCheck) -> data_quality_assertions_dataset.Assertion:
    return data_quality_assertions_dataset.Assertion(
        assertion=check.kind,
        success=check.passed,
        column=check.columns[0] if len(check.columns) == 1 else None,
        severity=_SEVERITIES[check.severity],
        name=check.title,
        expected=check.expected or None,
        actual=check.observed or None,
        params=check.more,
    )
