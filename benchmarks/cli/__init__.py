"""How long the msgen command takes."""
