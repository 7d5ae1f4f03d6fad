"""Rows of a result: kept where any offset can be read, encoded as Arrow messages, columnar pages or text."""
