"""What runs on Spark: its handler, and all that Spark is told before and asked after a statement."""
