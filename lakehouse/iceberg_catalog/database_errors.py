"""What is wrong with the database of a JDBC catalog, and what to do about it."""

_REMEDIES = {
    "readonly database": "let the worker's user write its file, and in the folder of it",
    "unable to open database file": "let the worker's user write its file, and in the folder of it",
    "disk is full": "make room on its disk",
}
"""What to do, by what SQLite says."""


def database_problem(reason: str) -> str:
    """Return why a catalog's database does not serve, in one line, and what to do about it where that is known."""
    why = reason.splitlines()[0] if reason else ""
    remedy = next((what for part, what in _REMEDIES.items() if part in why), "")
    return f"the catalog's database does not answer: {why}" + (f": {remedy}" if remedy else "")
