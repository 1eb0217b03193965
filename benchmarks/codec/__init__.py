"""Bytes per message, and time to encode and decode it, against other codecs."""
