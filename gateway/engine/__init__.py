"""Engines behind one protocol: worker processes, DataFusion with our functions, Spark, the way from one to the other."""
