"""Text to the nodes of strict YAML, which know their place."""
