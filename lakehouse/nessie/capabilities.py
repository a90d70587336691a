"""Capabilities of Nessie as a catalog of Sluice."""

from sluice.publishing.capabilities import CatalogCapabilities

CAPABILITIES = CatalogCapabilities(
    many_tables=True,
    new_tables=True,
    fencing_by_deletion=True,
    main_permissions=True,
    commit_properties=True,
    repeated_publish="merge parent",
    commit_timeout=5.0,  # nessie.version.store.persist.commit-timeout-millis, by default
    own_table_properties=("nessie.",),
)
