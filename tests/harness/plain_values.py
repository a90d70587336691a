"""Values of several libraries, in Python's own types."""

from datetime import datetime, timezone
from typing import Any

import pandas as pd  # type: ignore[import-untyped]


def plain_value(value: Any) -> Any:
    """Return a value in Python's own type, whatever library read it."""
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if value is pd.NA:
        return None
    if isinstance(value, pd.Timestamp):
        assert value.nanosecond == 0
        value = value.to_pydatetime()
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dict):
        return {key: plain_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    return repr(value) if isinstance(value, float) else value
