"""Spark as an engine: what it needs to be installed, how it is started, and statements on it. pyspark is imported late."""
