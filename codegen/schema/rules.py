"""The rules of schema files, from the files of their finders."""

from __future__ import annotations

from .lint import EMPTY_GROUP, UNUSED_IMPORT, UNUSED_TYPE, lint
from .rule import WARNING, Rule

RULES: tuple[Rule, ...] = (
    Rule(
        UNUSED_IMPORT,
        "an import of which nothing is used",
        "Whoever reads the file looks for a type of that group, and finds none.",
        "remove the import.",
        finder=lint,
        severity=WARNING,
    ),
    Rule(
        UNUSED_TYPE,
        "a struct or enum that is in no message",
        "It makes a class that nobody sends.",
        "use it or remove it.",
        finder=lint,
        severity=WARNING,
    ),
    Rule(
        EMPTY_GROUP,
        "a group that declares nothing",
        "It makes a module without content.",
        "add a message, struct or enum, or delete the file.",
        finder=lint,
        severity=WARNING,
    ),
)
