"""The engines that run Spark jobs, and what they share: Java, jars, configuration, class-data archive."""
