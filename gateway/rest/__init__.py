"""JSON over HTTP in, one verb of the service called, JSON out: the Statement Execution API, and what its clients ask too."""
