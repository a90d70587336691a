"""Renew the tables of documents that are generated from code: `make docs`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from sluice.presentation import check_reference, order_reference

DOCUMENTS: Mapping[str, Callable[[str], str]] = {
    "docs/checks.md": check_reference.documented,
    "docs/order.md": order_reference.documented,
}
"""By document, the function that returns its text with the tables renewed."""


def renew(folder: Path) -> None:
    """Renew the documents of a checkout."""
    for name, documented in DOCUMENTS.items():
        document = folder / name
        document.write_text(documented(document.read_text()))


if __name__ == "__main__":
    renew(Path.cwd())
