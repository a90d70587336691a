"""The id of this installation, which distinguishes its branches from others in the same catalog."""

import os
import re
import uuid
from pathlib import Path

from sluice.errors import BadEnvironment
from sluice.setting_groups import INSTALLATION_PATTERN
from sluice.settings import Settings

FILE = "installation"
"""File in the home that contains the id."""


def with_installation(settings: Settings) -> Settings:
    """Return settings with the installation's id: that of the setting, else that of the home, created if missing.

    Raises:
        BadEnvironment: the id cannot be read or written.
    """
    if settings.installation.sluice_installation:
        return settings
    return settings.with_values(sluice_installation=_read_or_create(settings.storage.sluice_home.absolute() / FILE))


def with_known_installation(settings: Settings) -> Settings:
    """Return settings with the installation's id. No command creates the id: a worker does.

    Raises:
        BadEnvironment: the id is not set, and this home has none.
    """
    if not known_installation(settings):
        raise BadEnvironment(
            f"the id of this installation is not known: no worker was started yet with SLUICE_HOME="
            f"{settings.storage.sluice_home.absolute()}. Start one, or set SLUICE_INSTALLATION to the worker's id"
        )
    return with_installation(settings)


def known_installation(settings: Settings) -> str:
    """Return the id of the installation; empty if the home has none yet.

    Raises:
        BadEnvironment: the id cannot be read.
    """
    if settings.installation.sluice_installation or (settings.storage.sluice_home.absolute() / FILE).exists():
        return with_installation(settings).installation.sluice_installation
    return ""


def _read_or_create(file: Path) -> str:
    """Return the id in a file. If several processes start at once, one creates it and the others read it."""
    try:
        if not file.exists():
            _create(file)
        return _read(file)
    except OSError as error:
        raise BadEnvironment(
            f"the id of this installation cannot be kept in {file}: {error.strerror or error}. "
            "Make the folder writable, or set SLUICE_INSTALLATION"
        ) from error


def _create(file: Path) -> None:
    """Write a new id to a temporary file, sync it to disk, and link it to the file's name unless that exists."""
    file.parent.mkdir(parents=True, exist_ok=True)
    written = file.with_name(f".{FILE}-{uuid.uuid4().hex}")
    try:
        with written.open("x") as stream:
            stream.write(f"{uuid.uuid4().hex[:16]}\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.link(written, file)
    except FileExistsError:
        return  # another process was first
    finally:
        written.unlink(missing_ok=True)


def _read(file: Path) -> str:
    installation = file.read_text(errors="replace").strip()
    if not re.fullmatch(INSTALLATION_PATTERN, installation):
        raise BadEnvironment(
            f"{file} contains no id of an installation: {installation[:50]!r}. Restore it, or set SLUICE_INSTALLATION "
            "to the id that the branches of this installation carry (`quarantine list --json` shows it)"
        )
    return installation
