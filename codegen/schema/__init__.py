"""YAML files to a checked, frozen model; nothing else of the generator is imported here."""
