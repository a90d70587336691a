"""The engines that run Spark jobs, and their common parts: Java, jars, configuration, class-data archive."""
