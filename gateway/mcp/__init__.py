"""JSON-RPC over HTTP in, one tool called, JSON out: the Model Context Protocol, by which agents run SQL."""
