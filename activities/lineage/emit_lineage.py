"""Send the OpenLineage events of a run."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import requests
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.lineage.lineage_client import is_configured, open_client
from lakehouse.catalog import BranchCatalog, TableVersion
from lakehouse.iceberg.table_state import load_table
from sluice.contracts.lineage import EmitLineageInput
from sluice.contracts.references import RunRef
from sluice.errors import BadEnvironment
from sluice.lineage.datasets import TableDataset
from sluice.pipeline.write import SOURCE_VIEW
from sluice.redaction import redacted
from sluice.setting_groups import LineageSettings
from sluice.sql.expression import tables_of

_log = logging.getLogger("sluice.activity")
_MAX_TABLES = 100
"""Maximum number of tables of each kind in an event. The activity reads the metadata of each."""
_FLUSH_SECONDS = 5.0
"""Maximum time for a transport that sends in the background to send one event, in seconds."""
_LATER = (408, 425, 429)
"""HTTP status codes, in addition to 500 and above, of a receiver that may accept the same event later."""


@dataclass(frozen=True)
class EmitLineageActivity:
    """The activities `can_emit_lineage` and `emit_lineage`.

    They need the settings of lineage, the catalog, and Iceberg's FileIO properties for the lake. A failure does not
    affect the run.
    """

    settings: LineageSettings
    catalog: BranchCatalog
    io: Mapping[str, str]
    catalog_name: str
    """Name of the catalog in Spark."""
    catalog_address: str
    """Address of the catalog for people."""

    @activity.defn(name="can_emit_lineage")
    def can_emit_lineage(self, run_ref: RunRef) -> bool:
        """Return True if a receiver of events is set up."""
        return is_configured(self.settings)

    @activity.defn(name="emit_lineage")
    def emit_lineage(self, input: EmitLineageInput) -> None:
        """Send one event. A repeat sends the same event again.

        Raises:
            ApplicationError: the receiver refuses the event, does not answer, or is not set up correctly.
        """
        if not is_configured(self.settings):
            return
        try:
            self._send(input)
        except BadEnvironment as error:
            raise _failure("BadEnvironment", str(error), is_final=True) from None
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            is_final = 400 <= status < 500 and status not in _LATER
            raise _failure("LineageRefused", f"the receiver answers {status}", is_final) from None
        except Exception as error:  # a transport may raise any error, and its text may contain an address with a key
            what = f"{type(error).__name__}: {error}" if not isinstance(error, OSError) else type(error).__name__
            raise _failure("LineageNotSent", what, is_final=False) from None

    def _send(self, input: EmitLineageInput) -> None:
        client = open_client(self.settings)
        from sluice.lineage.event import run_event  # noqa: PLC0415  # it imports the client

        event = run_event(
            input,
            self.settings.openlineage_namespace,
            redacted(self.catalog_address),
            read=list(self._read_tables(input)),
            published=dict(self._published_tables(input)),
        )
        try:
            client.emit(event)
        finally:
            client.close(_FLUSH_SECONDS)

    def _read_tables(self, input: EmitLineageInput) -> Iterable[TableDataset]:
        """Yield the tables of the lake that the run read but does not write, as far as their names are known.

        A name in SQL may begin with Spark's name of the catalog. A name that is not a table of the lake, such as that
        of a view, is left out.
        """
        if not input.base:
            return
        try:
            if input.catalog_id is not None:
                self.catalog.check_identity(input.catalog_id)
            for name in self._table_names(input):
                version = self.catalog.table_version(self.catalog.main, name, input.base)
                if version is not None:
                    yield self._dataset(name, version)
        except Exception as error:  # an event without them is better than none
            _log.warning("the event of the run leaves out tables that it read: %s", redacted(str(error)))

    def _table_names(self, input: EmitLineageInput) -> list[str]:
        prefix = f"{self.catalog_name}."
        names = [*input.read_tables, *(name for text in input.sql for name in tables_of(text) if name != SOURCE_VIEW)]
        plain = {name.removeprefix(prefix) for name in names} - {*input.tables}
        return sorted(name for name in plain if "." in name)[:_MAX_TABLES]

    def _published_tables(self, input: EmitLineageInput) -> Iterable[tuple[str, TableDataset]]:
        for table in input.published[:_MAX_TABLES]:
            version = TableVersion(table.version.metadata_location, table.version.snapshot_id)
            try:
                yield table.name, self._dataset(table.name, version)
            except Exception as error:  # its metadata is unreadable now; the path still gives its location
                _log.warning("the event of the run has no columns of %s: %s", table.name, redacted(str(error)))
                location = version.metadata_location.rsplit("/", 2)[0]
                yield table.name, TableDataset(table.name, location, version.snapshot_id)

    def _dataset(self, name: str, version: TableVersion) -> TableDataset:
        table = load_table(version, self.io)
        columns = [(field.name, str(field.field_type), field.doc or "") for field in table.schema().fields]
        return TableDataset(name, table.location(), version.snapshot_id, columns)


def _failure(kind: str, message: str, is_final: bool) -> ApplicationError:
    message = redacted(message)
    _log.warning("an OpenLineage event was not sent: %s", message)
    return ApplicationError(message, type=kind, non_retryable=is_final)
