"""Type expressions and defaults to types and values of the model."""
