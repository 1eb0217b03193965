"""The rules of changes: one row for each kind."""
