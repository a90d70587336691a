"""Join flights to airlines, and summarize delays by carrier, in a plain PySpark program without any Sluice code.

    spark-submit delays.py AIRLINES_CSV

Configuration alone puts the program's catalog on a branch, so both tables are published together.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main(airlines_csv: str) -> None:
    """Write nyc.flights_named and nyc.delays_by_carrier from nyc.flights."""
    spark = SparkSession.builder.appName("delays").getOrCreate()
    flights = spark.table("nyc.flights")
    airlines = spark.read.csv(airlines_csv, header=True).withColumnRenamed("name", "airline")
    named = flights.join(F.broadcast(airlines), "carrier", "left").select(
        "flight_date", "carrier", "airline", "flight", "origin", "dest", "dep_delay", "arr_delay"
    )
    named.writeTo("nyc.flights_named").using("iceberg").createOrReplace()
    delays = named.groupBy("carrier", "airline").agg(
        F.count(F.lit(1)).alias("flights"),
        F.round(F.avg("dep_delay"), 2).alias("mean_dep_delay"),
        F.round(F.avg("arr_delay"), 2).alias("mean_arr_delay"),
    )
    delays.writeTo("nyc.delays_by_carrier").using("iceberg").createOrReplace()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
