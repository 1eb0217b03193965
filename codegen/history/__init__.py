"""Older versions: git, what to compare with, recorded layouts."""
