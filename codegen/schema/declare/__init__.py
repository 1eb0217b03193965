"""Sections to the groups, messages, structs and enums of the model."""
