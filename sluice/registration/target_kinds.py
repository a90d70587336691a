"""Kinds of registration targets, with the settings of each."""

import re
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from sluice.base_model import StrictModel
from sluice.durations import Duration
from sluice.errors import BadEnvironment
from sluice.identifiers import name_elements
from sluice.secrets import read_secret

_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"
_PATTERN = r"^[A-Za-z0-9_.*?-]+$"
_SECRET_PROPERTY = re.compile(r"token|secret|passw|credential|private|(?:^|[._-])key|authorization", re.I)
_LOCAL = ("127.0.0.1", "localhost", "::1")


class SecretSource(StrictModel):
    """The source of a secret, read at each use: a file, or a variable of the worker's environment."""

    file: str = ""
    env: str = Field(default="", pattern=rf"{_VARIABLE}|^$")

    @model_validator(mode="before")
    @classmethod
    def _no_secret_itself(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            raise ValueError("do not write a secret into this file: write {file: PATH} or {env: VARIABLE}")
        return given

    @model_validator(mode="after")
    def _one_source(self) -> "SecretSource":
        if bool(self.file) == bool(self.env):
            raise ValueError("name one source of the secret: {file: PATH} or {env: VARIABLE}")
        return self

    def read(self, environment: Mapping[str, str]) -> str:
        """Return the secret.

        Raises:
            BadEnvironment: the file cannot be read, the variable is not set, or it is empty.
        """
        if self.file:
            return read_secret(self.file, "secret")
        if secret := environment.get(self.env, "").strip():
            return secret
        raise BadEnvironment(f"the variable {self.env} of the worker's environment is not set")


def _address(address: str) -> str:
    """Return the address of a service if it is valid. An address without TLS must be one of this machine."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("is not an address: write https://HOST/PATH")
    if parts.username or parts.password:
        raise ValueError("contains a user or a password: name the secret by {file: PATH} or {env: VARIABLE}")
    if parts.scheme == "http" and parts.hostname not in _LOCAL:
        raise ValueError("is not encrypted: write https:// (http:// is only for this machine)")
    return address


Address = Annotated[str, Field(max_length=2000), AfterValidator(_address)]


class Target(StrictModel):
    """Settings of every target."""

    tables: list[Annotated[str, Field(pattern=_PATTERN, max_length=400)]] = Field(default_factory=list, max_length=1000)
    """Patterns of tables, such as `nyc.*`. The target gets their publications even if no pipeline names it."""

    def wants(self, tables: Collection[str]) -> bool:
        """Return True if a pattern of the target matches one of these tables. Case makes no difference."""
        return any(self.wants_table(table) for table in tables)

    def tables_of(self, changed: Collection[str], *, is_named: bool) -> list[str]:
        """Return the changed tables to register: all if the pipeline names the target, else those it wants."""
        return [table for table in changed if is_named or self.wants_table(table)]

    def wants_table(self, table: str) -> bool:
        """Return True if a pattern of the target matches a table. Case makes no difference."""
        return any(fnmatchcase(table.casefold(), pattern.casefold()) for pattern in self.tables)


class WebhookTarget(Target):
    """A receiver of a signed CloudEvent for each publication."""

    kind: Literal["webhook"]
    url: Address = Field(repr=False)
    secret: SecretSource = Field(repr=False)
    """The secret that signs events, in the form of Standard Webhooks: `whsec_` and base64."""


class CommandTarget(Target):
    """A program of the operator's that gets the event of each publication on its standard input."""

    kind: Literal["command"]
    command: list[Annotated[str, Field(max_length=10_000)]] = Field(min_length=1, max_length=200)
    timeout: Annotated[Duration, Field(gt=0, le=600)] = 60.0
    environment: list[Annotated[str, Field(pattern=_VARIABLE)]] = Field(default_factory=list, max_length=200)
    """Variables of the worker that it inherits in addition to PATH, HOME, LANG and TZ."""

    @field_validator("command")
    @classmethod
    def _absolute(cls, command: list[str]) -> list[str]:
        if not Path(command[0]).is_absolute() or any("\0" in part for part in command):
            raise ValueError(f"{command[0]!r} is not an absolute path of a program")
        return command


class TableTarget(Target):
    """Base of the targets that are catalogs, in which tables are registered."""

    def table_problem(self, table: str) -> str | None:
        """Return the reason why the target cannot register a table of this name, or None."""
        return None

    def location_problem(self, location: str) -> str | None:
        """Return the reason why the target cannot read files at a location, or None."""
        if is_local(location):
            return (
                "the target cannot read files of this machine (`file:`): use a lake on an object store "
                "(WAREHOUSE=s3://…)"
            )
        return None


class RestTarget(TableTarget):
    """An Iceberg REST catalog that registers tables as they are on main."""

    kind: Literal["rest"]
    uri: Address = Field(repr=False)
    warehouse: str = ""
    token: SecretSource | None = Field(default=None, repr=False)
    credential: SecretSource | None = Field(default=None, repr=False)
    """A client's id and secret for OAuth2, as `ID:SECRET`."""
    oauth2_server_uri: Address | Literal[""] = ""
    scope: str = ""
    properties: dict[str, str] = Field(default_factory=dict, max_length=100)
    """Additional properties of PyIceberg's REST catalog, without secrets."""
    reads_local_files: bool = False
    """True if the catalog can read files of this machine, as on a laptop."""
    drop_and_register: bool = False
    """True if a table may be dropped and registered again where the catalog cannot overwrite an entry."""

    @field_validator("properties")
    @classmethod
    def _no_secrets(cls, properties: dict[str, str]) -> dict[str, str]:
        if secret := [name for name in properties if _SECRET_PROPERTY.search(name)]:
            raise ValueError(f"{secret[0]!r} looks like a secret: use `token` or `credential`")
        return properties

    def location_problem(self, location: str) -> str | None:
        """Return the reason why the target cannot read files at a location, or None."""
        if self.reads_local_files or not (problem := super().location_problem(location)):
            return None
        return f"{problem}; for a catalog on this machine, set `reads_local_files: true`"


class GlueTarget(TableTarget):
    """The AWS Glue Data Catalog. It reads credentials as the AWS SDKs do."""

    kind: Literal["glue"]
    region: str = Field(pattern=r"^[a-z0-9-]+$", max_length=50)
    catalog_id: str = Field(default="", pattern=r"^\d*$", max_length=12)
    """AWS account of the catalog; empty for the account of the credentials."""
    endpoint_url: Address | Literal[""] = ""
    profile: str = ""

    def table_problem(self, table: str) -> str | None:
        """Return the reason why Glue cannot register a table of this name, or None."""
        if len(name_elements(table)) != 2:
            return "Glue has databases of one level: the table needs a name of the form namespace.table"
        if table != table.lower():
            return (
                "Glue stores names in small letters, so engines would look for another table: name it in small letters"
            )
        return None


class SnowflakeTarget(TableTarget):
    """A Snowflake database, whose tables read metadata files in an object store."""

    kind: Literal["snowflake"]
    account: str = Field(pattern=r"^[A-Za-z0-9._-]{1,200}$")
    user: str = Field(min_length=1, max_length=300)
    private_key: SecretSource | None = Field(default=None, repr=False)
    """The user's private key in PEM."""
    token: SecretSource | None = Field(default=None, repr=False)
    """A programmatic access token of the user."""
    role: str = ""
    warehouse: str = ""
    database: str = Field(min_length=1, max_length=300)
    external_volume: str = Field(min_length=1, max_length=300)
    volume_location: str = Field(pattern=r"^[a-z0-9]+://\S+$", max_length=2000)
    """Active storage location of the external volume: the beginning of the locations of main's metadata files."""
    catalog_integration: str = Field(min_length=1, max_length=300)
    """A catalog integration with CATALOG_SOURCE = OBJECT_STORE."""

    @model_validator(mode="after")
    def _one_credential(self) -> "SnowflakeTarget":
        if bool(self.private_key) == bool(self.token):
            raise ValueError("name one credential: `private_key` or `token`")
        return self

    def table_problem(self, table: str) -> str | None:
        """Return the reason why Snowflake cannot register a table of this name, or None."""
        if len(name_elements(table)) != 2:
            return "Snowflake has schemas of one level: the table needs a name of the form namespace.table"
        return None

    def location_problem(self, location: str) -> str | None:
        """Return the reason why the target cannot read files at a location, or None."""
        base = self.volume_location.rstrip("/") + "/"
        if not (problem := super().location_problem(location)) and not f"{location}/".startswith(base):
            return f"{location} does not lie under {base}, the location of the external volume (`volume_location`)"
        return problem


def is_local(location: str) -> bool:
    """Return True if a location is in the file system of a machine."""
    return urlsplit(location).scheme in ("", "file")


AnyTarget = Annotated[
    WebhookTarget | CommandTarget | RestTarget | GlueTarget | SnowflakeTarget, Field(discriminator="kind")
]
EventTarget = WebhookTarget | CommandTarget
"""Targets that receive an event of each publication. The others register tables."""
