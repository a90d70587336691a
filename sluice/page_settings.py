"""Settings of a page that several people use through a proxy."""

from pydantic import Field, field_validator

from sluice.roles import parse_roles
from sluice.setting_groups import SettingsGroup

_HEADER = r"^([A-Za-z0-9-]{1,100})?$"


class PageSettings(SettingsGroup):
    """The proxy that names the people of the page, and their roles."""

    sluice_page_person_header: str = Field(default="", pattern=_HEADER, examples=["X-Forwarded-User"])
    """Header in which the proxy names the person of a request; empty means that no proxy does."""
    sluice_page_groups_header: str = Field(default="", pattern=_HEADER, examples=["X-Forwarded-Groups"])
    """Header in which the proxy names the groups of the person, separated by commas; empty means that none does."""
    sluice_page_secret_header: str = Field(default="", pattern=_HEADER, examples=["X-Sluice-Proxy"])
    """Header in which the proxy sends its secret."""
    sluice_page_secret_file: str = ""
    """File with the secret that proves that a request comes from the proxy."""
    sluice_page_roles: str = ""
    """Roles of people, or of groups if the proxy names them, as `platform=operator, *=viewer`."""

    @field_validator("sluice_page_roles")
    @classmethod
    def _are_roles(cls, roles: str) -> str:
        parse_roles(roles)
        return roles
