"""Making sure, in each step, that the catalog is the one that the run began with."""

from lakehouse.catalog import BranchCatalog


def check_catalog(catalog: BranchCatalog, expected: str | None) -> None:
    """Make sure that the catalog is the one that the run began with; None where the run knows none yet.

    Raises:
        CatalogChanged: it is another one, or it lost its data.
    """
    if expected is not None:
        catalog.check_identity(expected)
