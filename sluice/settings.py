"""Settings from environment variables: everything that differs between a laptop and a cluster.

`.env.example` documents each variable. The first source that sets a variable wins: the process's environment, `.env` in
the working directory, the file of the running local stack, the default.
"""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import ValidationError

from sluice.base_model import StrictModel
from sluice.errors import BadEnvironment
from sluice.page_settings import PageSettings
from sluice.setting_groups import (
    ApprovalSettings,
    ArrivalSettings,
    CatalogSettings,
    EncryptionSettings,
    InstallationSettings,
    LineageSettings,
    NotificationSettings,
    ReaperSettings,
    RegistrationSettings,
    ScanSettings,
    SettingsGroup,
    SparkJobSettings,
    SparkSettings,
    StorageSettings,
    TelemetrySettings,
    TimeoutSettings,
    WorkerSettings,
)
from sluice.validation_errors import plain_message

_REPLACED = {"CATALOGUE": "CATALOG", "ICEBERG_TYPE": "CATALOG", "SLUICE_CATALOG": "CATALOG_NAME"}
"""Names that former settings had, each with the setting to use."""


class Settings(StrictModel):
    """The settings of one process, by groups. Parts get a group; the entry points, which build parts, get all."""

    storage: StorageSettings = StorageSettings()
    installation: InstallationSettings = InstallationSettings()
    catalog: CatalogSettings = CatalogSettings()
    spark: SparkSettings = SparkSettings()
    scan: ScanSettings = ScanSettings()
    worker: WorkerSettings = WorkerSettings()
    timeouts: TimeoutSettings = TimeoutSettings()
    approval: ApprovalSettings = ApprovalSettings()
    encryption: EncryptionSettings = EncryptionSettings()
    reaper: ReaperSettings = ReaperSettings()
    arrivals: ArrivalSettings = ArrivalSettings()
    registration: RegistrationSettings = RegistrationSettings()
    notifications: NotificationSettings = NotificationSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    lineage: LineageSettings = LineageSettings()
    page: PageSettings = PageSettings()

    @classmethod
    def of(cls, **values: Any) -> "Settings":
        """Build settings from values of fields of any group.

        Raises:
            ValidationError: a value is not valid.
            KeyError: there is no such field.
        """
        return cls.model_validate(_by_group(values))

    def with_values(self, **values: Any) -> "Settings":
        """Return a copy with other values of fields of any group. The values are not validated."""
        groups = {name: getattr(self, name).model_copy(update=own) for name, own in _by_group(values).items()}
        return self.model_copy(update=groups)

    @property
    def spark_jobs(self) -> SparkJobSettings:
        """Everything that the configuration of a Spark job depends on."""
        return SparkJobSettings(
            spark=self.spark,
            storage=self.storage,
            catalog_name=self.catalog.catalog_name,
            lineage_namespace=self.lineage.openlineage_namespace,
        )

    @property
    def catalog_uri(self) -> str:
        """Address of the Iceberg catalog; by default a database in a file of the home."""
        if self.catalog.iceberg_uri or self.catalog.catalog != "sql":
            return self.catalog.iceberg_uri
        return f"sqlite:///{self.storage.sluice_home.absolute()}/iceberg/catalog.db"


GROUP_OF: dict[str, str] = {
    field: group
    for group, declared in Settings.model_fields.items()
    for field in cast("type[SettingsGroup]", declared.annotation).model_fields
}
"""Name of the group of each field."""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Build the settings from environment variables.

    Raises:
        BadEnvironment: the value of a variable is not valid, or a variable has a former name.
    """
    refuse_replaced(environment)
    fields = {name: environment[name.upper()] for name in GROUP_OF if name.upper() in environment}
    try:
        return Settings.of(**fields)
    except ValidationError as error:
        problems = (
            _problem(each) for each in error.errors() if each["type"] != "default_factory_not_called"
        )  # without the default of a field that depends on another, wrong one
        raise BadEnvironment("; ".join(problems)) from error


def _problem(error: Any) -> str:
    """Return an error with the name of its variable, and an example if the value has another form."""
    field = str(error["loc"][-1])
    message = plain_message(error)
    if error["type"] == "string_pattern_mismatch":
        group = cast("type[SettingsGroup]", Settings.model_fields[GROUP_OF[field]].annotation)
        examples = group.model_fields[field].examples
        assert examples, "a field with a pattern has an example"
        message = f"write it as in {examples[0]}"
    return f"{field.upper()}: {message}"


def refuse_replaced(environment: Mapping[str, str]) -> None:
    """Refuse variables with former names. To ignore them would mean to use another catalog.

    Raises:
        BadEnvironment: a variable has a former name.
    """
    if old := [f"{name} is now {new}" for name, new in _REPLACED.items() if environment.get(name)]:
        raise BadEnvironment(
            f"{', '.join(old)}: rename it in the environment or `.env`, and restart a local stack that runs "
            "(docs/catalogs.md)"
        )


def _by_group(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by the groups of their fields."""
    groups: dict[str, Any] = {}
    for name, value in values.items():
        groups.setdefault(GROUP_OF[name], {})[name] = value
    return groups
