"""The programs that `spark-submit` runs: the only place that imports pyspark."""
