"""Redact everything that looks like a secret from texts that are shown or stored.

The patterns are those that the services document, or that their own scanners search for:
- AWS: "Understanding unique ID prefixes" in the IAM user guide; git-secrets of AWS Labs for secret access keys
- Google Cloud: service-account keys as JSON, API keys (`AIza`), OAuth tokens (`ya29.`), client secrets (`GOCSPX-`)
- Azure: connection strings of storage, Service Bus and SQL; shared access signatures (`sig=`); client secrets (`8Q~`)
- GitHub: "About authentication to GitHub", token formats; GitLab: "Token overview", prefixes
- Slack: "Token types", and incoming webhooks; Stripe: "API keys"; OpenAI, Anthropic, Hugging Face: keys by prefix
- Databricks: personal access tokens (`dapi`); npm: "About access tokens" (`npm_`); PyPI: macaroons (`pypi-AgEI`)
- RFC 6750 and RFC 7617 (headers), RFC 7519 (JSON web tokens), RFC 7468 (PEM), RFC 3986 (user information in addresses)
"""

import base64
import re
from collections.abc import Callable

HIDDEN = "[hidden]"
_BEGIN, _END = r"-----BEGIN [A-Z0-9 ]{1,60}-----", r"-----END [A-Z0-9 ]{1,60}-----"
_PEM = re.compile(rf"{_BEGIN}.*?(?:{_END}|\Z)", re.DOTALL)
"""A PEM block, or its beginning if the rest was cut off. Also matches one line with `\\n`, as in JSON."""
_PEM_REST = re.compile(rf"\A(?:[A-Za-z0-9+/=\s]|\\[nr])*{_END}")
"""The end of a PEM block whose beginning was cut off."""
_PEM_BEGIN, _PEM_END = re.compile(_BEGIN), re.compile(_END)
_PEM_LINE = re.compile(r"[A-Za-z0-9+/=]{16,}[^A-Za-z0-9]{0,4}$|^[^A-Za-z0-9]*[A-Za-z0-9+/=]{0,64}$|: ")
"""A line within a PEM block: it ends with base64, consists of short base64 alone, or is a header of RFC 1421."""
_TOKENS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*){0,3}"  # a JSON web token, signed or encrypted
    r"|(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # AWS
    r"|AIza[A-Za-z0-9_-]{35}"  # Google
    r"|ya29\.[A-Za-z0-9_.-]{20,}|1//0[A-Za-z0-9_-]{30,}|GOCSPX-[A-Za-z0-9_-]{20,}"
    r"|[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{30,}"  # Azure
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"  # GitHub
    r"|gl(?:pat|ptt|rt|dt|cbt|soat|ft|agent|oas|imt)-[A-Za-z0-9_.=-]{16,}"  # GitLab
    r"|xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{8,}|xapp-\d-[A-Za-z0-9-]{10,}"  # Slack
    r"|(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{16,}"  # Stripe
    r"|sk-(?=[A-Za-z_-]*\d)(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{20,}"  # OpenAI, Anthropic
    r"|hf_[A-Za-z0-9]{30,}"  # Hugging Face
    r"|(?:dapi|dose)[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"  # Databricks
    r"|npm_[A-Za-z0-9]{36,}"  # npm
    r"|pypi-AgE[A-Za-z0-9_-]{20,}"  # PyPI
    r")"
    r"|(?<=hooks\.slack\.com/services/)[A-Za-z0-9/]{20,}"  # an incoming webhook of Slack
)
_USER_INFO = re.compile(
    r"(?<=://)[^/\s@?#\"'<>]{0,200}:(?!\d{1,5}(?:[/?#]|$))[^\s\"'<>]{0,400}(?=@[^\s@])"
    r"|(?<=https://)[^/\s:@?#\"'<>]{16,400}(?=@)"
)
"""User and password in an address, or a token alone. A password that does not look like a port may contain an unencoded
slash."""
_HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization\\?[\"']?\s*[:=]\s*\\?[\"']?"
    r"(?:(?:bearer|basic|digest|token|apikey|negotiate)\s+)?)([^\s\"',;\\]{8,})"
)
_BEARER = re.compile(r"(?i)\b(bearer\s+)(?=[^\s\"',;]*\d)([A-Za-z0-9+/=_.~-]{12,})")
_BASIC = re.compile(r"(?i)\b(basic\s+)([A-Za-z0-9+/]{8,}={0,2})(?![A-Za-z0-9+/=_-])")
_ALWAYS = (
    r"pass(?:word|wd|phrase|code)|pwd|secret|api[._-]?key|"
    r"(?:secret|access|account|private|shared|auth|encryption|signing)[._-]?(?:access[._-]?)?key|"
    r"(?:client|consumer|app|shared)[._-]?secret|x-amz-(?:signature|security-token)|"
    r"sharedaccess(?:key|signature)"
)
_IF_ASSIGNED = r"(?:[a-z]+[._-]?)?token|credentials?"
"""Names that also occur in sentences: `unexpected token: SELECT`."""
_NAMED = re.compile(
    rf"(?i)((?<![A-Za-z0-9])(?:[A-Za-z0-9]{{1,40}}[._-]){{0,8}}(?:{_ALWAYS}|({_IF_ASSIGNED}))(?:[._-]?value)?"
    r"\\?[\"']?\s*(?:=>|=|:(?!:))\s*)"
    r"(?:(\\?\")((?:[^\"\\]|\\[^\"])*)(?=\\?\")|(')([^']*)(?=')|([^\s\"',;&<>(){}\[\]]+))"
)
"""`password=…`, `token: …`, `"secret": "…"`, `fs.s3a.secret.key=…`. A quoted value ends with its quote."""
_SPARK_PROPERTY = re.compile(rf"(?im)^(\s*(?:spark|fs)\.[\w.-]{{0,200}}(?:{_ALWAYS}|{_IF_ASSIGNED})[ \t]+)(\S+)")
_SIGNATURE = re.compile(r"(?i)([?&;](?:sig|signature|x-goog-signature)=)([^&\s\"';]{8,})")
_AWS_SECRET = re.compile(
    r"(?<![A-Za-z0-9+/=_.:@-])(?=[A-Z0-9+/]*[a-z])(?=[a-z0-9+/]*[A-Z])(?=[A-Za-z+/]*\d)([A-Za-z0-9+/]{40})"
    r"(?![A-Za-z0-9+/=_.@-])"
)
"""Text in the form of an AWS secret access key: 40 characters of base64 with small and capital letters and digits."""
_NO_VALUE = re.compile(r"(?i)true|false|none|null|nil|\*+|x+|\.+|…|-+|\d{1,3}|is|was|the|of|for|file|set|required")
_PATH = re.compile(r"(?:~|\.{0,2})/[\w./@-]*|[\w./-]+\.(?:pem|key|txt|json|ya?ml|token|py|md|sql|csv|parquet)")


def redacted(text: str) -> str:
    """Return a text with everything that looks like a secret hidden."""
    text = _PEM_REST.sub(HIDDEN, _PEM.sub(HIDDEN, text))
    text = _USER_INFO.sub(HIDDEN, _TOKENS.sub(HIDDEN, text))
    for pattern in (_HEADER, _BEARER, _SIGNATURE):
        text = pattern.sub(rf"\1{HIDDEN}", text)
    text = _NAMED.sub(_hide_value, _BASIC.sub(_hide_basic, text))
    return _AWS_SECRET.sub(_hide_key, _SPARK_PROPERTY.sub(rf"\1{HIDDEN}", text))


def _hide_basic(match: re.Match[str]) -> str:
    """Hide credentials of the basic scheme: base64 of a name, a colon and a password."""
    try:
        decoded = base64.b64decode(match[2] + "=" * (-len(match[2]) % 4), validate=True).decode()
    except ValueError:
        return match[0]
    return f"{match[1]}{HIDDEN}" if ":" in decoded else match[0]


def _hide_value(match: re.Match[str]) -> str:
    name, if_assigned, double, in_double, single, in_single, bare = match.groups()
    value = next((each for each in (in_double, in_single, bare) if each is not None), "")
    if len(value) < 4 or HIDDEN in value or _NO_VALUE.fullmatch(value) or _PATH.fullmatch(value):
        return match[0]
    if bare is not None and if_assigned and ":" in name and bare.strip(".`").isalpha():
        return match[0]  # the next word of a sentence
    return f"{name}{double or single or ''}{HIDDEN}"


def _hide_key(match: re.Match[str]) -> str:
    """Hide text in the form of a key unless it is a path: it begins with a slash, or has words or numbers as parts."""
    parts = match[1].split("/")
    is_path = match[1].startswith("/") and len(parts) > 2
    return match[0] if is_path or all(part.isalpha() or part.isdigit() for part in parts) else HIDDEN


def line_redactor() -> Callable[[str], str]:
    """Return a function that redacts a text line by line, including PEM blocks of many lines."""
    in_block = False

    def redact(line: str) -> str:
        nonlocal in_block
        if in_block and (end := _PEM_END.search(line)):
            in_block, line = False, HIDDEN + line[end.end() :]
        elif in_block and _PEM_LINE.search(line):
            return HIDDEN
        begins = [match.end() for match in _PEM_BEGIN.finditer(line)]
        in_block = bool(begins) and not _PEM_END.search(line, begins[-1])
        return redacted(line)

    return redact
