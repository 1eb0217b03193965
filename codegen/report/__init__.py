"""Findings as text, JSON, GitHub annotations, Markdown and SARIF."""
