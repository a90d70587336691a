"""The programs that `spark-submit` runs, and the only package that imports pyspark."""
