"""Check that the catalog is still the one that the run began with."""

from lakehouse.catalog import BranchCatalog


def check_catalog(catalog: BranchCatalog, expected: str | None) -> None:
    """Check that the catalog is the one that the run began with.

    Args:
        expected: the recorded identity of the catalog; None if the run has not recorded one yet.

    Raises:
        CatalogChanged: it is another catalog, or it lost its data.
    """
    if expected is not None:
        catalog.check_identity(expected)
