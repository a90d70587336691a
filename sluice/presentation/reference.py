"""Renew the texts that are generated from code, `make docs`: tables of documents, and the list of checks."""

from collections.abc import Callable, Mapping
from pathlib import Path

from sluice.presentation import check_reference, order_reference
from sluice.presentation.known_checks import KNOWN_CHECKS

DOCUMENTS: Mapping[str, Callable[[str], str]] = {
    "docs/checks.md": check_reference.documented,
    "docs/order.md": order_reference.documented,
}
"""By document, the function that returns its text with the tables renewed."""


def renew(folder: Path) -> None:
    """Renew the documents of a checkout, and the list of checks."""
    for name, documented in DOCUMENTS.items():
        document = folder / name
        document.write_text(documented(document.read_text()))
    KNOWN_CHECKS.write_text(check_reference.listed(), encoding="utf-8")


if __name__ == "__main__":
    renew(Path.cwd())
