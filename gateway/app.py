"""Composition root: the only module that builds catalogs, workers, service and transport from a `Config`."""
