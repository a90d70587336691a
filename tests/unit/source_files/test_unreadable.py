"""An error names file, line, column and value of a row that cannot be read."""

import pytest

from sluice.contracts.spark_jobs import UnreadableRows
from sluice.input.unreadable import describe_unreadable

ROWS = UnreadableRows(
    path="orders.csv", record="7,twelve", column="amount", value="twelve", type_name="decimal(10,2)", rows=1
)

CORRECT = ". Correct the file"
AS_TEXT = f"{CORRECT}, or read amount as STRING and convert it by a transform"


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        ({}, 101, f"orders.csv, line 101: amount: 'twelve' is not a valid decimal(10,2); 1 such row{AS_TEXT}"),
        (
            {"problem": "NULL, and source.schema states NOT NULL", "value": ""},
            7,
            "orders.csv, line 7: amount is NULL, and source.schema states NOT NULL; 1 such row",
        ),
        (
            {"rows": 12},
            1101,
            f"orders.csv, line 1,101: amount: 'twelve' is not a valid decimal(10,2); 12 such rows{AS_TEXT}",
        ),
        (
            {"value": "1.005"},
            2,
            f"orders.csv, line 2: amount: '1.005' cannot be stored exactly as a decimal(10,2); 1 such row{AS_TEXT}",
        ),
        (
            {"value": "12d", "type_name": "double"},
            2,
            f"orders.csv, line 2: amount: '12d' is not a valid double; 1 such row{AS_TEXT}",
        ),
        (
            {"value": "1.5", "type_name": "int"},
            2,
            f"orders.csv, line 2: amount: '1.5' is not a valid int; 1 such row{AS_TEXT}",
        ),
        (
            {"value": "007", "type_name": "int", "is_of_table": True},
            2,
            "orders.csv, line 2: amount: '007' has a leading zero or a plus sign, which the table's type int would "
            "drop: if it is a number, state its type in `source.schema`; if it is a code, the column must be STRING; "
            "1 such row",
        ),
        (
            {"value": "0124", "type_name": "date", "is_of_table": True},
            2,
            f"orders.csv, line 2: amount: '0124' is not a valid date; 1 such row{AS_TEXT}",
        ),
        (
            {"rows": 1000, "there_may_be_more": True},
            None,
            f"orders.csv: amount: 'twelve' is not a valid decimal(10,2); 1,000 such rows or more{AS_TEXT}",
        ),
        (
            {"column": "", "value": "", "type_name": ""},
            3,
            "orders.csv, line 3: a value does not fit its column, or the number of values is wrong; 1 such row. "
            "Correct the file",
        ),
        (
            {"column": "", "value": "", "type_name": "", "values": 7, "columns": 8},
            3,
            f"orders.csv, line 3: it has 7 values for 8 columns; 1 such row{CORRECT}",
        ),
        (
            {"column": "", "value": "", "type_name": "", "values": 2, "columns": 1},
            3,
            "orders.csv, line 3: it has 2 values for 1 column: set `source.options.sep` to its separator; 1 such row",
        ),
        (
            {"column": "", "value": "", "type_name": "", "values": 1, "columns": 9, "rows": 3},
            2,
            "orders.csv, line 2: it has 1 value for 9 columns: set `source.options.sep` to its separator; 3 such rows",
        ),
        (  # the last line was cut off
            {"column": "", "value": "", "type_name": "", "values": 1, "columns": 9},
            57,
            f"orders.csv, line 57: it has 1 value for 9 columns; 1 such row{CORRECT}",
        ),
        (
            {"column": "", "value": "", "type_name": "", "problem": "it is not a whole JSON value"},
            101,
            f"orders.csv, line 101: it is not a whole JSON value; 1 such row{CORRECT}",
        ),
    ],
)
def test_a_reason_names_the_row(change: dict[str, object], line: int | None, message: str) -> None:
    assert describe_unreadable(ROWS.model_copy(update=change), line, show_values=True) == message


def test_values_are_shown_only_where_the_pipeline_allows_it() -> None:
    message = describe_unreadable(ROWS, 101, show_values=False)
    hint = "(`show_values: true` shows the value)"
    assert message == f"orders.csv, line 101: amount: '…' is not a valid decimal(10,2) {hint}; 1 such row{AS_TEXT}"


def test_long_values_are_shortened() -> None:
    message = describe_unreadable(ROWS.model_copy(update={"value": "x" * 500}), 1, show_values=True)
    assert len(message) < 240
