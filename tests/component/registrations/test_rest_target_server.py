"""The same registrations on Iceberg's REST reference server, which cannot overwrite an entry."""

from pathlib import Path
from uuid import uuid4

import pytest

from lakehouse.targets.mirror import MirrorWriter
from lakehouse.targets.open_mirror import open_mirror
from sluice.errors import RegistrationRefused
from sluice.registration.target_kinds import RestTarget
from tests.harness.iceberg_rest import IcebergRestServer
from tests.harness.main_tables import MainTables


def test_a_table_is_registered_and_replaced_where_that_is_allowed(
    iceberg_rest: IcebergRestServer, tmp_path: Path
) -> None:
    main, table = MainTables(tmp_path), f"mirror.inner.t{uuid4().hex[:8]}"
    writer, target = (
        MirrorWriter(main.catalog, {}),
        RestTarget(kind="rest", uri=iceberg_rest.uri, reads_local_files=True),
    )
    first = main.publish(table)
    assert writer.bring_to_main(target, open_mirror(target), table).startswith("registered")
    assert iceberg_rest.open().load_table(table).metadata_location == first
    second = main.publish(table)
    assert writer.is_behind(target, open_mirror(target), table)
    with pytest.raises(RegistrationRefused, match="drop_and_register: true"):
        writer.bring_to_main(target, open_mirror(target), table)
    assert iceberg_rest.open().load_table(table).metadata_location == first
    allowed = target.model_copy(update={"drop_and_register": True})
    assert writer.bring_to_main(allowed, open_mirror(allowed), table).startswith("now at 00002-")
    held = iceberg_rest.open().load_table(table)
    assert held.metadata_location == second and held.schema() is not None
    assert Path(second.removeprefix("file://")).exists()
    assert not writer.is_behind(allowed, open_mirror(allowed), table)
