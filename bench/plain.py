"""Programs that people write without Sluice, for the comparison in bench/runs.py.

spark-submit plain.py bare|script SOURCE TABLE NESSIE_URI
"""

import os
import sys
import uuid

import requests
from pyspark.sql import DataFrame, SparkSession

_SCHEMA = "id bigint, kind string, amount double"


def append(spark: SparkSession, rows: DataFrame, table: str) -> None:
    """Append to a table, or create it."""
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.split('.', maxsplit=1)[0]}")
    rows.writeTo(table).append() if spark.catalog.tableExists(table) else rows.writeTo(table).create()


def script(spark: SparkSession, rows: DataFrame, table: str, uri: str) -> None:
    """Branch, write, count nulls and merge, without any handling of failures."""
    http = requests.Session()
    http.headers["Authorization"] = f"Bearer {os.environ['NESSIE_TOKEN']}"
    name = f"wap/plain-{uuid.uuid4().hex}"
    main = http.get(f"{uri}/trees/main", timeout=30).json()["reference"]
    branch_url = f"{uri}/trees/{name.replace('/', '%2F')}"
    http.post(f"{uri}/trees", params={"name": name, "type": "BRANCH"}, json=main, timeout=30).raise_for_status()
    spark.conf.set("spark.sql.catalog.nessie.ref", name)
    append(spark, rows, table)
    if spark.table(table).filter("id IS NULL OR kind IS NULL").count():
        raise SystemExit("there are nulls")
    head = http.get(branch_url, timeout=30).json()["reference"]["hash"]
    merge = {"fromRefName": name, "fromHash": head}
    http.post(f"{uri}/trees/main@{main['hash']}/history/merge", json=merge, timeout=60).raise_for_status()
    http.delete(f"{branch_url}@{head}", timeout=30).raise_for_status()


if __name__ == "__main__":
    way, source, table, uri = sys.argv[1:]
    session = SparkSession.builder.getOrCreate()
    read = session.read.option("header", True).schema(_SCHEMA).csv(source)
    if way == "bare":
        append(session, read, table)
    else:
        script(session, read, table, uri)
