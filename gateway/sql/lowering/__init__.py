"""A bound tree in; the engine's text, the scans that it reads and the functions that it asks for out."""
