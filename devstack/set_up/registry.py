"""Convert pip's registry settings to environment variables for uv."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
}


def uv_settings(python: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Read pip's registry settings; return uv's variables, except those that are already set.

    People behind a mirror have configured pip, in a file or with variables that uv does not read.
    """
    command = [str(python), "-m", "pip", "config", "list", "--disable-pip-version-check"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return {name: value for name, value in parse_pip_settings(listed).items() if name not in environment}


def parse_pip_settings(listed: str) -> dict[str, str]:
    """Return uv's variables for the output of `pip config list`. Settings of `install` override global settings."""
    settings: dict[str, str] = {}
    for prefix in ("global.", "install.", ":env:."):
        for line in listed.splitlines():
            key, _, value = line.partition("=")
            name = _NAMES.get(key.removeprefix(prefix)) if key.startswith(prefix) else None
            if name:
                settings[name] = " ".join(value.strip("'\"").replace("\\n", " ").split())
    return settings
