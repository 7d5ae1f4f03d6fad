"""Names to tables: schemas, tables and lasting objects of a warehouse folder, the sample data, allowed paths."""
