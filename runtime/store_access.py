"""Access to the object store: export its credentials, since libraries read them from environment variables only."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from sluice.job_environment import STORE_VARIABLES

CREDENTIALS_FILE = "SLUICE_STORE_CREDENTIALS_FILE"
"""Name of the variable that names the file with the credentials of the local stack's store."""
_ENDPOINT = "AWS_ENDPOINT_URL_S3"
_OTHER_CREDENTIALS = ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE")


def export_store_access(environment: Mapping[str, str]) -> None:
    """Export the variables by which libraries reach the object store.

    Variables of `.env` do not replace variables that are set. The credentials of the local stack's store replace
    others, as long as that store is the one in use.

    Args:
        environment: as `read_environment` returns it.
    """
    for name in STORE_VARIABLES & environment.keys():
        os.environ.setdefault(name, environment[name])
    try:
        local: dict[str, str] = json.loads(Path(environment[CREDENTIALS_FILE]).read_text())
    except (OSError, ValueError, KeyError):
        return
    if environment.get(_ENDPOINT) == local[_ENDPOINT]:
        os.environ.update(local)
        for name in _OTHER_CREDENTIALS:
            os.environ.pop(name, None)
