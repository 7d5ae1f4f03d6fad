"""Sockets in, one call of the protocol per request out; the only asynchronous code."""
