"""Delta tables in, pinned to one version: logs read, files pruned and scanned, commits written; where files may lie."""
