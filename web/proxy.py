"""Access through a proxy that signs people in: it names the person of a request, and proves itself by a secret."""

import unicodedata
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from sluice.approval.decisions import NAME_LIMIT, person
from sluice.errors import BadEnvironment
from sluice.page_settings import PageSettings
from sluice.roles import RoleList, parse_roles
from sluice.secrets import read_secret
from sluice.setting_groups import ApprovalSettings, InstallationSettings
from web.access import API, STATIC, Visitor, local_hosts, path_of
from web.session import HEALTH, SHORTEST_SECRET, equal_secrets

_FORBIDDEN = 403
_NO_CHARACTERS_OF_A_NAME = ("C", "Zl", "Zp")
"""Beginnings of Unicode categories: control and invisible characters, and separators of lines."""
_DEFAULT_ROLES = "*=viewer"


class _BadHeader(ValueError):
    """A header does not say who sends the request."""


@dataclass(frozen=True)
class ProxyAccess:
    """Access by headers of the named proxy. A request without proof is refused, whatever else it has."""

    address: str
    """Address at which people open the page."""
    person_header: str
    groups_header: str
    """Header with the groups of the person; empty if the roles are those of people."""
    secret_header: str
    secret: str
    roles: RoleList
    port: int

    public = (STATIC, HEALTH)

    @property
    def hosts(self) -> frozenset[str]:
        """Hosts that a request may name: those of the page, and that of the proxy, which may pass its own host on."""
        return local_hosts(self.port) | {urlsplit(self.address).netloc}

    @property
    def origins(self) -> frozenset[str]:
        """Origins of pages whose forms the page accepts."""
        return frozenset({self.address})

    def admit(self, request: Request) -> Visitor | Response:
        """Return the person whom the proxy names, or the response that refuses the request."""
        sent = request.headers.getlist(self.secret_header)
        if len(sent) != 1 or not equal_secrets(sent[0], self.secret):
            return _refused(request, f"This page answers only requests of its proxy: open {self.address}")
        try:
            name = _name(self.person_header, self._only(request, self.person_header))
            names = self._groups(request) if self.groups_header else (name,)
        except _BadHeader as error:
            return _refused(request, f"It is not known who you are: {error}. The proxy of this page sends it.")
        role = self.roles.role_of(names)
        if role is None:
            why = "The administrator of this page gives roles, in SLUICE_PAGE_ROLES."
            return _refused(request, f"{name}, you have no role on this page. {why}")
        return Visitor(name, role)

    def _groups(self, request: Request) -> tuple[str, ...]:
        if not request.headers.getlist(self.groups_header):  # a person without groups
            return ()
        text = self._only(request, self.groups_header)
        return tuple(filter(None, (each.strip() for each in text.split(","))))

    def _only(self, request: Request, header: str) -> str:
        """Return the value of a header that a request has once. A second one may come from the client."""
        values = request.headers.getlist(header)
        if len(values) != 1:
            raise _BadHeader(f"the header {header} is {'given twice' if values else 'missing'}")
        try:
            return values[0].encode("latin-1").decode()
        except UnicodeError:
            raise _BadHeader(f"the header {header} is not UTF-8") from None


def _name(header: str, value: str) -> str:
    """Return the name of a person.

    Raises:
        _BadHeader: the value is not one name.
    """
    name = value.strip(" ")
    if len(name) > NAME_LIMIT:
        raise _BadHeader(f"the header {header} has {len(name):,} characters, and the limit is {NAME_LIMIT}")
    if any(unicodedata.category(character).startswith(_NO_CHARACTERS_OF_A_NAME) for character in name):
        raise _BadHeader(f"the header {header} has a control character or an invisible one")
    if "," in name:  # a proxy that joins two headers separates them by a comma
        raise _BadHeader(f"the header {header} has a comma, so it may name two people")
    if not person(name):
        raise _BadHeader(f"the header {header} names nobody")
    return name


def _refused(request: Request, why: str) -> Response:
    if path_of(request).startswith(API):
        return JSONResponse({"error": why}, _FORBIDDEN)
    return PlainTextResponse(why, _FORBIDDEN)


def read_proxy(
    page: PageSettings, installation: InstallationSettings, approval: ApprovalSettings, port: int
) -> ProxyAccess | None:
    """Return the proxy that the settings name; None if they name none.

    Args:
        approval: settings that must not sign decisions, because a key is that of one person.

    Raises:
        BadEnvironment: the settings are incomplete, or permit what a proxy must not.
    """
    address = installation.sluice_page
    if not page.sluice_page_person_header:
        _check_unused(page)
        return None
    secret = read_secret(page.sluice_page_secret_file, "SLUICE_PAGE_SECRET_FILE")
    _check(page, secret, address)
    if approval.sluice_approval_key_file:
        raise BadEnvironment(
            "SLUICE_APPROVAL_KEY_FILE signs in the name of one person, and SLUICE_PAGE_PERSON_HEADER is for several: "
            "unset one of them"
        )
    return ProxyAccess(
        address=address,
        person_header=page.sluice_page_person_header,
        groups_header=page.sluice_page_groups_header,
        secret_header=page.sluice_page_secret_header,
        secret=secret,
        roles=parse_roles(page.sluice_page_roles or _DEFAULT_ROLES),
        port=port,
    )


def _check_unused(page: PageSettings) -> None:
    """Check that no setting of a proxy is set without the first one: it would be ignored silently."""
    if unused := [name.upper() for name, value in page if value]:
        raise BadEnvironment(f"{', '.join(unused)} without SLUICE_PAGE_PERSON_HEADER: set it, or unset the others")


def _check(page: PageSettings, secret: str, address: str) -> None:
    headers = [page.sluice_page_person_header, page.sluice_page_groups_header, page.sluice_page_secret_header]
    named = [each.lower() for each in headers if each]
    if not (page.sluice_page_secret_header and secret):
        raise BadEnvironment(
            "SLUICE_PAGE_PERSON_HEADER needs a proof: set SLUICE_PAGE_SECRET_HEADER and SLUICE_PAGE_SECRET_FILE"
        )
    if len(secret) < SHORTEST_SECRET or not secret.isascii() or not secret.isprintable():
        raise BadEnvironment(
            f"SLUICE_PAGE_SECRET_FILE={page.sluice_page_secret_file}: write one line of at least {SHORTEST_SECRET} "
            "letters and digits"
        )
    if len(set(named)) != len(named):
        raise BadEnvironment("SLUICE_PAGE_PERSON_HEADER, …_GROUPS_HEADER and …_SECRET_HEADER name one header twice")
    if not _is_origin(address):
        raise BadEnvironment(
            f"SLUICE_PAGE={address}: with SLUICE_PAGE_PERSON_HEADER, write the address at which people open the page, "
            "without a path and in small letters, as https://sluice.example.org"
        )


def _is_origin(address: str) -> bool:
    """Return True if an address is an origin as browsers send it: in small letters, without a path or default port."""
    try:
        parts = urlsplit(address)
        default = {"http": 80, "https": 443}.get(parts.scheme)
        has_own_port = default is not None and parts.port != default
        is_plain = address.isascii() and address == address.lower() and "@" not in address
        return has_own_port and is_plain and bool(parts.hostname) and address == f"{parts.scheme}://{parts.netloc}"
    except ValueError:
        return False
