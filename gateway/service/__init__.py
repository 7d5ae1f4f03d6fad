"""The verbs of a warehouse over plain values: sessions, operations, admission, expiry; blocking code."""
