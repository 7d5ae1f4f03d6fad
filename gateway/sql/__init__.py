"""A statement's text in, a compiled statement out (`compile`); each phase is a room of its own."""
