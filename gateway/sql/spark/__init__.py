"""A statement's text in; what Spark is sent of it out: names and parameters by position, nothing that must not reach it."""
