"""Name the Parquet or ORC file whose content cannot be decoded, or does not have its stored checksums."""

import re

from sluice.contracts.spark_jobs import IngestSpec
from spark_jobs.load_files import path_of_address

_READING = re.compile(r"FAILED_READ_FILE\.NO_HINT\S* Encountered error while reading file (\S+)\.\s")
_CHECKSUM = re.compile("crc|checksum", re.IGNORECASE)


def damaged_files(error: str, spec: IngestSpec) -> list[str]:
    """Return a sentence that names the damaged file, or an empty list if an error may have another reason.

    A local file was read whole before the job, so that only its content can be the reason. A store may not answer.

    Args:
        error: the text of Spark's error with its causes.
    """
    source, reading = spec.write.source, _READING.search(error)
    if reading is None or source is None or source.reader_format() not in ("parquet", "orc"):
        return []
    has_other_checksum = bool(_CHECKSUM.search(error, reading.end()))
    if not reading[1].startswith("file:") and not has_other_checksum:
        return []
    damage = "a page does not have its stored checksum" if has_other_checksum else "Spark cannot decode a part of it"
    return [f"{path_of_address(reading[1])} is damaged: {damage}. Copy the file again, or write it again"]
