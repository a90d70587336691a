"""Mask values of rows in error messages, unless the pipeline says `show_values: true`.

A reason goes to Slack, into commits and into lists of runs. Spark quotes the value that it could not cast, and an
exception of a user's program may quote anything. A masked message keeps the class and condition of the error. The log
of the job has the whole message, and only the job's owner can read it.
"""

import re

HIDDEN_VALUE = "…"
_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_.]+)?\]")
_FREE_TEXT_CONDITIONS = ("USER_RAISED", "FAILED_EXECUTE_UDF", "MALFORMED_", "FAILED_READ_FILE", "TASK_WRITE_FAILED")
"""Prefixes of Spark's conditions whose messages contain free text of a record or a person, not a template's values."""
_SINGLE_QUOTED = re.compile(r"'(?:\\.|[^'\\])*'")
_TO_LAST_QUOTE = re.compile(r"'.*'")
_TYPE = re.compile(r"\"[A-Z][A-Z_]*(?:\([\d, ]+\)|<.*>)?\"")
_AFTER_INPUT = re.compile(r"((?:[Ff]or input string|[Mm]alformed [\w ]+|[Cc]orrupt(?:ed)? record)\b[^:]*: ).*")
_QUOTED_OR_NUMBER = re.compile(
    r"(?P<quoted>\"[^\"]*\")|(?<![\w./:#-])-?\d[\d.,]*(?:[eE][+-]?\d+)?[A-Z]{0,2}(?![\w/:-])"
)
_LIBRARIES = ("java.", "javax.", "org.", "pyspark.", "py4j.", "software.amazon.", "scala.")
_SAFE = (
    "AnalysisException",
    "ParseException",
    "SyntaxError",
    "ImportError",
    "ModuleNotFoundError",
    "NameError",
    "FileNotFoundError",
    "PermissionError",
    "InvalidPipelineError",
)
"""Errors of a program or its set-up. They name columns, tables and files, and occur before rows are read."""
_OF_THE_MACHINE = ("OutOfMemoryError", "StackOverflowError", "ConnectException", "UnknownHostException")
_CLASS = re.compile(r"(?P<name>[\w.$]*(?:Error|Exception|Exit|Interrupt|Warning))\b")


def mask_values(message: str) -> str:
    """Return a message of Spark or of a library with quoted values and numbers masked. Names of types stay."""
    condition = _CONDITION.search(message)
    if condition and condition["name"].startswith(_FREE_TEXT_CONDITIONS):
        return f"{message[: condition.end()]} {HIDDEN_VALUE}"
    text = _AFTER_INPUT.sub(rf"\1{HIDDEN_VALUE}", message)
    text = (_SINGLE_QUOTED if condition else _TO_LAST_QUOTE).sub(f"'{HIDDEN_VALUE}'", text)
    return _QUOTED_OR_NUMBER.sub(_hide, text)


def _hide(match: re.Match[str]) -> str:
    """Hide a number, or text in double quotes unless it is the name of a type."""
    if not match["quoted"]:
        return HIDDEN_VALUE
    return match[0] if _TYPE.fullmatch(match[0]) else f'"{HIDDEN_VALUE}"'


def mask_error(line: str) -> str:
    """Return the line of a job's output that reports its error, with possible values of rows masked.

    Only the class remains of an exception that a user's program raised itself.
    """
    error = _CLASS.match(line)
    name = error["name"] if error else ""
    if name.rsplit(".", 1)[-1] in _SAFE:
        return line
    if _CONDITION.search(line) or name.startswith(_LIBRARIES):
        return mask_values(line)
    return _class_alone(name)


def mask_cause(line: str) -> str:
    """Return the cause that Java reports behind an error, with possible values of rows masked.

    Free text may come from an exception of a user's function, in any package. Only its class remains.
    """
    error = _CLASS.match(line)
    name = error["name"] if error else ""
    if _CONDITION.search(line) or name.rsplit(".", 1)[-1] in _OF_THE_MACHINE:
        return mask_error(line)
    return _class_alone(name)


def _class_alone(name: str) -> str:
    return f"{name or 'its last line'}: {HIDDEN_VALUE} (it may quote rows: see the log of the job)"
