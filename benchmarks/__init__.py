"""Benchmarks: the gateway beside DataFusion in process (the floor) and Sail, in the same run, with answers compared."""
