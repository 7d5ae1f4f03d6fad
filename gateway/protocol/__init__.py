"""Thrift bytes in, one verb of the service called, Thrift bytes out; what each client is known to send."""
