"""Model to the text of Python modules."""
