"""Delta SQL Gateway."""

__version__ = "0.1.0"
