"""Two models to changes: who is who, and what differs."""
