"""Addresses of the page of the local stack, with and without a proxy that signs people in."""

from collections.abc import Mapping
from pathlib import Path

from web.session import Session, read_or_make_token

_ADDRESS, _PROXY = "SLUICE_PAGE", "SLUICE_PAGE_PERSON_HEADER"


def page_variables(environment: Mapping[str, str], port: int) -> dict[str, str]:
    """Return the address of the page for links: that of its proxy, or its own."""
    own = f"http://127.0.0.1:{port}"
    return {_ADDRESS: environment.get(_ADDRESS, own) if environment.get(_PROXY) else own}


def opening_address(environment: Mapping[str, str], variables: Mapping[str, str], home: Path, port: int | None) -> str:
    """Return the address that a person opens: that of the proxy, or the page's own, which signs a browser in.

    Args:
        variables: the variables of the running stack.
        port: port of the page; None if no page runs. Then the address is empty.
    """
    if port is None:
        return ""
    if environment.get(_PROXY):
        return variables.get(_ADDRESS, "")
    return Session(read_or_make_token(home), "", port).address
