"""Built-in Spark jobs over a warehouse: load files and databases, look after tables, compare engines, make data."""
