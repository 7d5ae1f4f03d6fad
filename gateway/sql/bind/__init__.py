"""A parsed tree and what names mean in; a bound and typed tree out, or Spark's analysis error with its place."""
