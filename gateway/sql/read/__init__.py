"""Text in; tokens, then a tree of sqlglot's nodes or a command as a value out. No name is looked up."""
