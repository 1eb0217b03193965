"""The table of findings: whole, in order, and known to `msgen explain` by every id ever printed."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgen import codegen
from msgen.codegen.cli.check import check
from msgen.codegen.cli.commands import main
from msgen.codegen.report import FORMATS, LISTS, RULES
from msgen.codegen.schema.rule import ERROR, NOTE, WARNING, Rule

TESTS = Path(__file__).parents[1]
_PRINTED = re.compile(
    r": (?:error|warning|note|waived): .+ \[([\w-]+)\]$|\"rule\": \"([\w-]+)\"",
    re.MULTILINE,
)
_ID = re.compile(r"[a-z]+(-[a-z]+)*|[A-Z]+(_[A-Z]+)*")
EXPECTATIONS = sorted((TESTS / "golden").rglob("*.md"))


def declared() -> Iterator[Rule]:
    """Yield the rows that stand in the modules of the generator."""
    for module in pkgutil.walk_packages(codegen.__path__, f"{codegen.__name__}."):
        if not module.name.endswith("__main__"):
            values = vars(importlib.import_module(module.name)).values()
            yield from (each for each in values if isinstance(each, Rule))


def test_every_row_is_in_the_table() -> None:
    assert {id(rule) for rule in declared()} == {id(rule) for rule in RULES.values()}


def test_an_id_has_one_row() -> None:
    listed = [rule.id for rules in LISTS.values() for rule in rules]
    assert len(listed) == len(set(listed)) == len(RULES)
    plain = {name.upper().replace("-", "_") for name in listed}
    assert len(plain) == len(listed)


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_a_row_is_whole(rule: Rule) -> None:
    assert _ID.fullmatch(rule.id)
    assert rule.purpose and not rule.purpose.endswith(".")
    assert rule.why.endswith(".") and rule.instead.endswith(".")
    assert rule.severity in (ERROR, WARNING, NOTE)
    assert callable(rule.finder)
    assert rule.finder.__module__.startswith(f"{codegen.__name__}.")


def test_a_row_stands_beside_its_finder() -> None:
    for rule in RULES.values():
        module = importlib.import_module(rule.finder.__module__)
        assert rule in vars(module).values(), rule.id


def test_explain_knows_every_id_that_is_printed() -> None:
    printed = {
        name
        for path in EXPECTATIONS
        for found in _PRINTED.findall(path.read_bytes().decode("utf-8", "replace"))
        for name in found
        if name
    }
    assert len(printed) > 100
    assert printed - RULES.keys() == set()


@pytest.mark.parametrize(
    "name", ["yaml-syntax", "YAML_SYNTAX", "Yaml-Syntax", "stale_module", "int-changed"]
)
def test_explain_takes_an_id_however_it_is_spelled(name: str) -> None:
    told = CliRunner().invoke(main, ["explain", name])
    assert told.exit_code == 0
    id_ = told.stdout.partition(":")[0]
    assert id_ in RULES and id_.upper().replace("-", "_") == name.upper().replace(
        "-", "_"
    )


def test_a_name_that_is_almost_an_id_is_told_as_it_is_spelled() -> None:
    told = CliRunner().invoke(main, ["explain", "yaml-sintax"])
    assert told.exit_code == 2
    assert told.stderr == (
        "error: there is no rule 'yaml-sintax'; did you mean 'yaml-syntax'?\n"
    )


def test_rules_are_listed_by_where_they_are_told() -> None:
    lines = CliRunner().invoke(main, ["rules"]).stdout.splitlines()
    assert [line[:-1] for line in lines if line.endswith(":")] == list(LISTS)
    named = [line.split()[0] for line in lines if line.split()[:1] and "  " in line]
    assert named == list(RULES)


def test_the_command_line_offers_every_format() -> None:
    (option,) = [each for each in check.params if each.name == "format_"]
    assert list(option.type.choices) == list(FORMATS)  # type: ignore[attr-defined]
