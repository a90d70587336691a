"""Register tables of main in the AWS Glue Data Catalog, with its optimistic lock."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from lakehouse.targets.mirror import MirroredTable
from sluice.errors import RegistrationRefused, ServiceUnavailable
from sluice.identifiers import name_elements
from sluice.registration.target_kinds import GlueTarget

_LOCATION, _PREVIOUS, _TYPE = "metadata_location", "previous_metadata_location", "table_type"
"""Parameters of an Iceberg table in Glue, as Iceberg's own catalog for Glue writes them."""
_MAX_COMMENT = 255
_SIMPLE: dict[type[IcebergType], str] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    DateType: "date",
    TimestampType: "timestamp",
    TimestamptzType: "timestamp",
    BinaryType: "binary",
    FixedType: "binary",
}
"""Hive's names of types. A type that Hive lacks, such as a time or UUID, becomes `string`."""


class GlueMirror:
    """The tables of a Glue catalog. Credentials come from the usual sources of the AWS SDKs."""

    def __init__(self, target: GlueTarget) -> None:
        session = botocore.session.Session(profile=target.profile or None)
        config = Config(connect_timeout=10, read_timeout=60, retries={"total_max_attempts": 3, "mode": "standard"})
        self._catalog = {"CatalogId": target.catalog_id} if target.catalog_id else {}
        with _errors():
            self._glue = session.create_client(
                "glue", region_name=target.region, endpoint_url=target.endpoint_url or None, config=config
            )

    def find(self, table: str) -> MirroredTable | None:
        """Return a table of Glue with its version, or None if Glue has no table of this name.

        Raises:
            RegistrationRefused: the table in Glue is not an Iceberg table.
        """
        held = self._get(table)
        if held is None:
            return None
        parameters = held.get("Parameters", {})
        if parameters.get(_TYPE, "").upper() != "ICEBERG" or _LOCATION not in parameters:
            raise RegistrationRefused(f"Glue has {table}, but not as an Iceberg table: drop or rename it there")
        return MirroredTable(parameters[_LOCATION], held.get("VersionId", ""))

    def create(self, table: str, location: str, metadata: TableMetadata) -> None:
        """Register a table that Glue does not have, with its database."""
        database, name = name_elements(table)
        with _errors():
            with suppress(self._glue.exceptions.AlreadyExistsException):
                self._glue.create_database(**self._catalog, DatabaseInput={"Name": database})
            self._glue.create_table(
                **self._catalog, DatabaseName=database, TableInput=_table_input(name, location, metadata, {})
            )

    def update(self, table: str, location: str, metadata: TableMetadata, present: MirroredTable) -> None:
        """Point a table at another metadata file, if Glue still has the version that was read before."""
        database, name = name_elements(table)
        held = self._get(table)
        if held is None or held.get("VersionId", "") != present.version:
            raise ServiceUnavailable(f"Glue: {table} was changed there meanwhile")
        with _errors():
            self._glue.update_table(
                **self._catalog,
                DatabaseName=database,
                TableInput=_table_input(name, location, metadata, held),
                SkipArchive=True,
                VersionId=present.version,
            )

    def examine(self) -> str:
        """List one database, which succeeds only with the right region and credentials."""
        with _errors():
            self._glue.get_databases(**self._catalog, MaxResults=1)
        return f"Glue in {self._glue.meta.region_name} answers"

    def _get(self, table: str) -> dict[str, Any] | None:
        database, name = name_elements(table)
        with _errors():
            try:
                answer: dict[str, Any] = self._glue.get_table(**self._catalog, DatabaseName=database, Name=name)
            except self._glue.exceptions.EntityNotFoundException:
                return None
        return dict(answer["Table"])


def _table_input(name: str, location: str, metadata: TableMetadata, held: dict[str, Any]) -> dict[str, Any]:
    """Return Glue's description of a table. Fields that others wrote in Glue, such as owner or comment, stay."""
    kept: dict[str, Any] = {key: held[key] for key in ("Owner", "Description", "Retention") if key in held}
    parameters = dict(held.get("Parameters", {}))
    if parameters.get(_LOCATION):
        parameters[_PREVIOUS] = parameters[_LOCATION]
    return {
        **kept,
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {**parameters, _TYPE: "ICEBERG", _LOCATION: location, "EXTERNAL": "TRUE"},
        "StorageDescriptor": {"Location": metadata.location, "Columns": _columns(metadata)},
    }


def _columns(metadata: TableMetadata) -> list[dict[str, Any]]:
    """Return the columns for Glue's console. Engines read them from the metadata file."""
    return [
        {
            "Name": field.name,
            "Type": _hive_type(field.field_type),
            **({"Comment": field.doc[:_MAX_COMMENT]} if field.doc else {}),
        }
        for field in metadata.schema().fields
    ]


def _hive_type(kind: IcebergType) -> str:
    if isinstance(kind, DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    if isinstance(kind, ListType):
        return f"array<{_hive_type(kind.element_type)}>"
    if isinstance(kind, MapType):
        return f"map<{_hive_type(kind.key_type)},{_hive_type(kind.value_type)}>"
    if isinstance(kind, StructType):
        return f"struct<{','.join(f'{field.name}:{_hive_type(field.field_type)}' for field in kind.fields)}>"
    return _SIMPLE.get(type(kind), "string")


@contextmanager
def _errors() -> Iterator[None]:
    """Map errors of the SDK, all as retryable: people may correct rights and credentials within a day."""
    try:
        yield
    except ClientError as error:
        refusal = error.response.get("Error", {})
        raise ServiceUnavailable(
            f"Glue refuses: {refusal.get('Code', 'unknown')}: {str(refusal.get('Message', ''))[:300]}"
        ) from None
    except BotoCoreError as error:
        raise ServiceUnavailable(f"Glue does not answer: {type(error).__name__}") from None
