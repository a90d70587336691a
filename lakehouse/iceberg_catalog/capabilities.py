"""Capabilities of an Iceberg catalog as a catalog of Sluice."""

from sluice.pipeline.table_properties import DELETING_PROPERTIES
from sluice.publishing.capabilities import CatalogCapabilities, Guarantee


def capabilities_of(guarantee: Guarantee) -> CatalogCapabilities:
    """Return the capabilities of a catalog with this guarantee for commits to several tables."""
    return CatalogCapabilities(
        many_tables=guarantee != "one by one",
        new_tables=True,
        fencing_by_deletion=True,
        main_permissions=False,
        commit_properties=True,
        repeated_publish="merge parent",
        commit_timeout=5.0,
        guarantee=guarantee,
        tables_without_snapshot=False,
        names_with_dots=False,
        merges_into_branches=False,
        # A job sees them as false: it may not delete files that main or another branch needs.
        own_table_properties=DELETING_PROPERTIES,
    )
