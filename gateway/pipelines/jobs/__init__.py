"""Built-in Spark jobs over the tables of a warehouse: load files and databases, look after tables, compare engines, make data."""
