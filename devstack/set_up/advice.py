"""Advice for a failed step of the set-up, found by patterns in the step's log."""

import re

_ADVICE = (
    (
        r"No space left on device|ENOSPC|Disk quota exceeded",
        "The disk is full. Set-up needs about 6 GB: 3 GB here and 3 GB in uv's cache. Free some space, "
        "or set UV_CACHE_DIR to a folder on another disk.",
    ),
    (
        r"ensurepip is not available|No module named '?(venv|ensurepip)",
        "This Python has no venv module. On Debian and Ubuntu: apt-get install python3-venv. "
        "Or choose another Python: make setup PYTHON=/path/to/python3.",
    ),
    (
        r"Hash mismatch|hash(es)? (do|does) not match|DO NOT MATCH THE HASHES",
        "A downloaded file is not the one that the lock file names. A mirror or a proxy may have changed it. "
        "Try another network or mirror; do not install without the hashes.",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|invalid peer certificate|UnknownIssuer|PKIX path building failed",
        "The registry's TLS certificate is not trusted here. Set SSL_CERT_FILE to the certificates of your network; "
        "for the jars, import them into Java's trust store.",
    ),
    (
        r"dns error|failed to lookup|Name or service not known|Temporary failure in name resolution|UnknownHost"
        r"|Network is unreachable|Connection refused|No route to host|timed out|error sending request"
        r"|Failed to fetch|Server access [Ee]rror|UNRESOLVED DEPENDENCIES|No matching distribution"
        r"|Connection reset|Failed to download",
        "A package registry could not be reached. Check the network and, behind a proxy, HTTPS_PROXY; "
        "for a mirror, pip's settings and UV_DEFAULT_INDEX are used. Finished downloads are kept.",
    ),
    (
        r"Permission denied|Read-only file system",
        "A folder cannot be written. The line above names it: correct its owner.",
    ),
    (
        r"there is no Temporal CLI",
        "Install the Temporal CLI and set TEMPORAL_CLI_PATH to it, or install Go 1.23 or later.",
    ),
)


def advise(log: str) -> str:
    """Return advice for a failure with this log."""
    for pattern, advice in _ADVICE:
        if re.search(pattern, log):
            return advice
    return "The log says why. Correct that, or report it with the log."
