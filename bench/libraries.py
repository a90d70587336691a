"""Run the checking libraries on the same tables, in a process with its own packages (locks/bench.txt).

    python bench/libraries.py SESSION.json OUT.json ROUNDS TABLE...

SESSION.json has the Spark configuration of the other ways; OUT.json gets seconds by library, suite and table.
Each suite states the checks of `bench/suites.py` in the library's own terms.
"""

import json
import sys
import time
from pathlib import Path

import great_expectations as gx
import great_expectations.expectations as gxe
from pyspark.sql import SparkSession
from soda.scan import Scan

STATUS = ["new", "paid", "sent", "done", "void"]
REGEX = "^[A-Z]{2}-[0-9]{6}$"


def great_expectations_provable():
    return [
        gxe.ExpectTableRowCountToBeBetween(min_value=1),
        gxe.ExpectColumnValuesToNotBeNull(column="id"),
        gxe.ExpectColumnValuesToNotBeNull(column="customer"),
        gxe.ExpectColumnValuesToNotBeNull(column="amount"),
        gxe.ExpectColumnValuesToNotBeNull(column="note", mostly=0.9),
        gxe.ExpectColumnProportionOfNonNullValuesToBeBetween(column="note", min_value=0.01)
        if hasattr(gxe, "ExpectColumnProportionOfNonNullValuesToBeBetween")
        else gxe.ExpectColumnValuesToNotBeNull(column="note", mostly=0.01),
        gxe.ExpectColumnMinToBeBetween(column="id", min_value=0),
        gxe.ExpectColumnValuesToBeBetween(column="qty", min_value=1, max_value=100),
        gxe.ExpectColumnValuesToBeBetween(column="amount", min_value=0, max_value=1000),
        gxe.ExpectColumnMaxToBeBetween(column="id", min_value=0),
        gxe.ExpectColumnMinToBeBetween(column="qty", min_value=1),
        gxe.ExpectColumnMaxToBeBetween(column="amount", max_value=1000),
    ]


def great_expectations_mixed():
    return [
        *great_expectations_provable(),
        gxe.ExpectColumnValuesToBeInSet(column="status", value_set=STATUS),
        gxe.ExpectColumnValuesToMatchRegex(column="code", regex=REGEX),
        gxe.ExpectColumnValuesToBeUnique(column="id"),
        gxe.ExpectColumnUniqueValueCountToBeBetween(column="customer", min_value=100000),
        gxe.ExpectColumnMeanToBeBetween(column="amount", min_value=499, max_value=501),
        gxe.ExpectColumnPairValuesAToBeGreaterThanB(column_A="updated", column_B="created", or_equal=True),
        gxe.ExpectColumnValueLengthsToEqual(column="code", value=9),
        gxe.ExpectColumnStdevToBeBetween(column="amount", min_value=280, max_value=300),
    ]


def by_great_expectations(spark, table, suite):
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    asset = context.data_sources.add_spark("spark").add_dataframe_asset(name="orders")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch(
        batch_parameters={"dataframe": spark.table(table)}
    )
    wanted = great_expectations_mixed() if suite == "mixed" else great_expectations_provable()
    result = batch.validate(gx.ExpectationSuite(name=suite, expectations=wanted), result_format="BOOLEAN_ONLY")
    assert result.success, result


SODA_PROVABLE = """
  - row_count > 0
  - missing_count(id) = 0
  - missing_count(customer) = 0
  - missing_count(amount) = 0
  - missing_percent(note) < 10
  - missing_percent(note) < 99
  - min(id) >= 0
  - min(qty) >= 1
  - max(qty) <= 100
  - min(amount) >= 0
  - max(amount) <= 1000
  - max(id) >= 0
"""
SODA_MORE = f"""
  - invalid_count(status) = 0:
      valid values: [{", ".join(STATUS)}]
  - invalid_count(code) = 0:
      valid regex: {REGEX}
  - duplicate_count(id) = 0
  - distinct >= 100000:
      distinct expression: count(DISTINCT customer)
  - avg(amount) between 499 and 501
  - late = 0:
      late expression: count_if(created > updated)
  - min_length(code) = 9
  - deviation between 280 and 300:
      deviation expression: stddev_samp(amount)
"""


def by_soda(spark, table, suite):
    spark.table(table).createOrReplaceTempView("orders")
    scan = Scan()
    scan.disable_telemetry()
    scan.set_data_source_name("spark")
    scan.add_spark_session(spark, data_source_name="spark")
    scan.add_sodacl_yaml_str(
        "checks for orders:" + SODA_PROVABLE + (SODA_MORE.lstrip("\n") if suite == "mixed" else "")
    )
    scan.execute()
    assert not scan.has_error_logs() and not scan.has_check_fails(), scan.get_logs_text()


WAYS = {"great expectations": by_great_expectations, "soda": by_soda}


def main(session, out, rounds, *tables):
    builder = SparkSession.builder
    for key, value in json.loads(Path(session).read_text()).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    results = {}
    for table in tables:
        for suite in ("provable", "mixed"):
            for name, way in WAYS.items():
                seconds = []
                try:
                    for _ in range(int(rounds) + 1):
                        began = time.perf_counter()
                        way(spark, table, suite)
                        seconds.append(time.perf_counter() - began)
                except Exception as error:
                    print(f"{name} {suite} {table}: {str(error)[:2000]}", file=sys.stderr)
                    continue
                results[f"{suite}/{table}/{name}"] = seconds[1:]
                print(name, suite, table, [round(each, 2) for each in seconds[1:]], flush=True)
                Path(out).write_text(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
