"""Model to `{path: text}`, one folder per language; `output` alone writes files."""
