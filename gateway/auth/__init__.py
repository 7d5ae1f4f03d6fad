"""Who calls: a request's headers in, a user out, or an error that each client can show."""
