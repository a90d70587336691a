"""Environment variables of Spark jobs: an allow-list that keeps the worker's credentials away from jobs.

A job is somebody else's program. It can read its own environment and that of every process that it may inspect. So this
module lists the variables that a Spark process inherits from the worker. SLUICE_JOB_ENVIRONMENT adds further names. A
pipeline sets its own values under `write.environment`.
"""

import re
from collections.abc import Collection, Mapping

_ALWAYS = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "LANG", "LANGUAGE", "TZ", "TERM"),
        *("TMPDIR", "TMP", "TEMP", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
        *("JAVA_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
        *("KRB5_CONFIG", "KRB5CCNAME", "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"),
    }
)
"""Variables that every Spark process inherits: paths, user, locale, folders, Java, certificates, proxies, clusters."""
_FAMILIES = ("LC_", "SPARK_", "HADOOP_", "YARN_", "PYTHON", "PYSPARK_", "ARROW_", "PYARROW_", "OMP_", "OPENBLAS_",
             "MKL_", "NUMEXPR_")  # fmt: skip
"""Prefixes of names that jobs inherit. A name that looks like a secret's passes only if the whole name is listed."""
STORE_VARIABLES = frozenset(
    {
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"),
        *("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_STS"),
        *("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE", "AWS_STS_REGIONAL_ENDPOINTS"),
        *("AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_EC2_METADATA_DISABLED"),
        *("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
        *("AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
        *(
            "AWS_MAX_ATTEMPTS",
            "AWS_RETRY_MODE",
            "AWS_REQUEST_CHECKSUM_CALCULATION",
            "AWS_S3_US_EAST_1_REGIONAL_ENDPOINT",
        ),
        *("AWS_RESPONSE_CHECKSUM_VALIDATION", "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT"),
    }
)
"""Variables for access to the object store. Only a Spark that uses one inherits them."""
_NEVER = re.compile(r"TEMPORAL_|SLACK_|SLUICE_|SPARK_REMOTE|SPARK_CONNECT_|.*PUBLISHER")
"""Names that no job inherits, even if listed: they belong to Temporal, Slack, the publisher, or another job."""
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE|(?:^|_)(?:API_?)?KEY(?:_|$)", re.I)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_OF_SPARK = ("SPARK_", "PYSPARK_", "HADOOP_", "YARN_", "LD_", "DYLD_", "JAVA_", "JDK_", "PYTHON", "AWS_", "_JAVA")
_MAX_VALUE = 8192


def job_environment(variables: Mapping[str, str], more: Collection[str] = (), *, with_s3: bool) -> dict[str, str]:
    """Return the variables of the worker that a Spark process inherits.

    Args:
        variables: environment of the worker.
        more: further names that the process inherits.
        with_s3: True if Spark reads or writes an object store.
    """
    return {name: value for name, value in variables.items() if _passes(name, more, with_s3)}


def names_problem(names: Collection[str]) -> str | None:
    """Return the reason why the worker's settings cannot give these names to jobs, or None."""
    for name in names:
        if not _NAME.fullmatch(name):
            return f"{name!r} is not a valid name of a variable: write names, separated by commas"
        if _NEVER.match(name):
            return f"a job never gets {name}: it would let the job act as the worker"
    return None


def values_problem(values: Mapping[str, str]) -> str | None:
    """Return the reason why a pipeline cannot set these variables for its program, or None."""
    for name, value in values.items():
        if not _NAME.fullmatch(name):
            return f"{name!r} is not a valid name of a variable: use letters, digits and underscores"
        if name in _ALWAYS or _NEVER.match(name) or name.startswith(_OF_SPARK):
            return f"{name} cannot be set by a pipeline: the worker and Spark use it"
        if "\0" in value or len(value) > _MAX_VALUE:
            return f"the value of {name} is longer than {_MAX_VALUE} characters, or contains a null character"
    return None


def _passes(name: str, more: Collection[str], with_s3: bool) -> bool:
    if _NEVER.match(name):
        return False
    if name in _ALWAYS or name in more or (with_s3 and name in STORE_VARIABLES):
        return True
    return name.startswith(_FAMILIES) and not _SECRET.search(name)
