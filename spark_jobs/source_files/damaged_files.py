"""Name the Parquet or ORC file whose content cannot be decoded, or does not have its stored checksums."""

import re

from sluice.contracts.spark_jobs import IngestSpec
from spark_jobs.values.file_addresses import path_of_address

_READING = re.compile(r"FAILED_READ_FILE\.NO_HINT\S* Encountered error while reading file (\S+)\.\s")
_CHECKSUM, _NO_MEMORY = "could not verify page integrity", "Cannot reserve additional contiguous bytes"


def damaged_files(error: str, spec: IngestSpec) -> list[str]:
    """Return a sentence that names the damaged file, or an empty list if an error may have another reason.

    A local file was read whole before the job, so that its content is the reason, unless Spark lacked memory. An error
    of a store may also be a lost connection, so that only a checksum counts.

    Args:
        error: the text of Spark's error with its causes.
    """
    source, reading = spec.write.source, _READING.search(error)
    if reading is None or source is None or source.reader_format() not in ("parquet", "orc"):
        return []
    has_other_checksum = _CHECKSUM in error
    if _NO_MEMORY in error or not (has_other_checksum or reading[1].startswith("file:")):
        return []
    damage = "a page does not have its stored checksum" if has_other_checksum else "Spark cannot decode a part of it"
    return [f"{path_of_address(reading[1])} is damaged: {damage}. Copy the file again, or write it again"]
