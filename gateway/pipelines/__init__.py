"""Data pipelines on Spark: declarative projects and built-in jobs; nothing but the command line imports this package."""
