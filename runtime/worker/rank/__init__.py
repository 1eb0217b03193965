"""A rank's process: what it is told, how ranks meet, how it ends."""
