"""What a diff finds in schemas whose parts hold one another: whom a change concerns, and how."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from click.testing import CliRunner
from msgen.codegen.cli.commands import main
from msgen.codegen.evolve import (
    BROKEN,
    OK,
    REFUSED,
    RULES,
    Diff,
    Finding,
    diff,
)
from msgen.codegen.evolve import findings as diff_module
from msgen.codegen.evolve.changes import Walk
from msgen.codegen.evolve.rollout import Rollout
from msgen.codegen.schema.loader import load_files
from msgen.codegen.schema.model import Schema
from msgen.codegen.schema.rule import NOTE, WARNING

TYPES = """
group: types
version: 2
structs:
  Outer: {fields: {inner: Inner, count: int}}
  Inner: {fields: {depth: int}}
"""
FIRST = """
group: first
receiver: one
senders: [two]
imports: [types]
messages:
  Direct: {tag: 1, fields: {outer: Outer}}
  Other: {tag: 2, fields: {uid: int}}
  Inside: {tag: 3, fields: {list: 'list[Inner]'}}
"""
SECOND = """
group: second
receiver: two
senders: [one, three]
version: 2
imports: [types]
messages:
  Later:
    tag: 1
    fields:
      uid: int
      outer: {type: Outer?, default: null, since: 2}
"""
ALL = {"types": TYPES, "first": FIRST, "second": SECOND}


def compared(old: Mapping[str, str], new: Mapping[str, str]) -> Diff:
    return diff(schema_of(old), schema_of(new))


def schema_of(files: Mapping[str, str]) -> Schema:
    texts = {f"{name}.yaml": text.encode() for name, text in files.items()}
    return load_files("schema", "schema", texts)


def changed(files: Mapping[str, str], *edits: tuple[str, str, str]) -> dict[str, str]:
    new = dict(files)
    for name, before, after in edits:
        assert before in new[name], before
        new[name] = new[name].replace(before, after)
    return new


def only(found: Diff) -> Finding:
    (finding,) = found.findings
    return finding


def rules(found: Diff) -> list[str]:
    return [each.change.rule.id for each in found.findings]


def test_one_change_in_a_shared_struct_is_one_finding_about_all_it_reaches() -> None:
    finding = only(compared(ALL, changed(ALL, ("types", "depth: int", "depth: u8"))))
    assert finding.messages == ("first.Direct", "first.Inside", "second.Later")
    assert finding.groups == ("first", "second")
    assert (finding.readers, finding.senders) == (
        ("one", "two"),
        ("one", "three", "two"),
    )
    # The fingerprint of `first` sees the struct; that of `second` does not, since `outer` is later.
    assert (finding.new_reads_old, finding.old_reads_new) == (BROKEN, REFUSED)


def test_each_group_has_a_verdict_of_its_own() -> None:
    found = compared(ALL, changed(ALL, ("types", "depth: int", "depth: u8")))
    verdicts = {each.group: each for each in found.verdicts}
    assert not verdicts["first"].same_fingerprint
    second = verdicts["second"]
    assert second.same_fingerprint
    assert (second.new_reads_old, second.old_reads_new) == (BROKEN, OK)
    assert second.rollout == "one and three, then two"
    assert "types" not in verdicts


def test_a_struct_that_only_a_later_field_holds_is_not_guarded_by_the_fingerprint() -> (
    None
):
    files = {"types": TYPES, "second": SECOND}
    finding = only(
        compared(files, changed(files, ("types", "count: int", "count: str")))
    )
    assert (finding.new_reads_old, finding.old_reads_new) == (BROKEN, BROKEN)
    assert finding.change.rule.id == "FIELD_RETYPED"


def test_a_struct_split_in_two_is_compared_where_it_is_used() -> None:
    copied = "  Inner: {fields: {depth: int}}\n  Special: {fields: {depth: int, more: int}}\n"
    new = changed(
        ALL,
        ("types", "  Inner: {fields: {depth: int}}\n", copied),
        ("first", "list[Inner]", "list[Special]"),
    )
    found = compared(ALL, new)
    assert rules(found) == [
        "TYPE_REPLACED",
        "STRUCT_ADDED",
        "FIELD_ADDED_WITHOUT_SINCE",
    ]
    assert found.findings[2].messages == ("first.Inside",)
    assert found.findings[2].change.subject == "types.Special.more"


def test_two_structs_that_become_one_are_compared_with_each() -> None:
    old = changed(
        ALL,
        ("types", "depth: int}}", "depth: int}}\n  Twin: {fields: {depth: u8}}"),
        ("first", "list[Inner]", "list[Twin]"),
    )
    found = compared(old, ALL)
    assert rules(found) == ["TYPE_REPLACED", "STRUCT_REMOVED", "INT_CHANGED"]
    assert found.findings[2].messages == ("first.Inside",)


def test_structs_that_hold_each_other_are_told_once() -> None:
    text = (
        "group: g\nreceiver: r\nmessages:\n  M: {tag: 1, fields: {left: Left}}\n"
        "structs:\n  Left: {fields: {right: Right?, n: int}}\n"
        "  Right: {fields: {left: 'list[Left]', more: 'dict[str, Right]'}}\n"
    )
    found = compared({"g": text}, {"g": text.replace("n: int", "n: u8")})
    assert only(found).messages == ("g.M",)
    renamed = text.replace("Left", "West").replace("Right", "East")
    assert rules(compared({"g": text}, {"g": renamed})) == ["STRUCT_RENAMED"] * 2


def test_a_message_inside_a_struct_of_another_group_is_followed() -> None:
    inner = (
        "group: a\nreceiver: r\nmessages:\n  In: {tag: 1, fields: {x: int}}\n"
        "structs:\n  S: {fields: {m: In}}\n"
    )
    outer = "group: b\nreceiver: q\nimports: [a]\nmessages:\n  Out: {tag: 1, fields: {s: S}}\n"
    files = {"a": inner, "b": outer}
    finding = only(compared(files, changed(files, ("a", "x: int", "x: u8"))))
    assert finding.groups == ("a", "b")
    assert (finding.new_reads_old, finding.messages) == (REFUSED, ("a.In", "b.Out"))


def test_a_batch_breaks_with_what_it_holds() -> None:
    text = FIRST.replace("messages:", "batch: {name: Batch, tag: 0}\nmessages:")
    old = {"types": TYPES, "first": text}
    finding = only(
        compared(old, changed(old, ("first", "tag: 2,", "tag: 2, removed: true,")))
    )
    assert finding.messages == ("first.Batch", "first.Other")
    assert (finding.new_reads_old, finding.old_reads_new) == (BROKEN, OK)


def test_a_batch_that_becomes_a_message_and_back() -> None:
    batch = (
        "group: g\nreceiver: r\nbatch: {name: B, tag: 0}\nmessages:\n  M: {tag: 1}\n"
    )
    plain = "group: g\nreceiver: r\nmessages:\n  B: {tag: 0, fields: {data: any}}\n  M: {tag: 1}\n"
    for old, new in ((batch, plain), (plain, batch)):
        finding = only(compared({"g": old}, {"g": new}))
        assert finding.change.rule.id == "BATCH_CHANGED"
        assert finding.new_reads_old == REFUSED
    other = plain.replace("  B:", "  C:")
    assert only(compared({"g": batch}, {"g": other})).change.rule.id == "TAG_REUSED"
    renamed = batch.replace("name: B", "name: C")
    assert rules(compared({"g": batch}, {"g": renamed})) == [
        "MESSAGE_RENAMED_WITHOUT_WAS"
    ]


def test_messages_that_swap_their_tags_or_their_order() -> None:
    swapped = (
        FIRST.replace("tag: 2", "tag: 9")
        .replace("tag: 1", "tag: 2")
        .replace("tag: 9", "tag: 1")
    )
    found = compared(ALL, {**ALL, "first": swapped})
    assert rules(found) == ["TAG_CHANGED", "TAG_CHANGED"]
    lines = FIRST.splitlines()
    lines[7], lines[8] = lines[8], lines[7]
    assert compared(ALL, {**ALL, "first": "\n".join(lines)}).findings == ()


def test_fields_of_a_removed_message_count_in_the_fingerprint_only() -> None:
    old = changed(ALL, ("first", "tag: 2,", "tag: 2, removed: true,"))
    finding = only(compared(old, changed(old, ("first", "{uid: int}", "{uid: u8}"))))
    assert finding.new_reads_old == REFUSED
    later = {
        "types": TYPES,
        "second": SECOND
        + "  Gone: {tag: 2, since: 2, removed: true, fields: {uid: int, outer: Outer}}\n",
    }
    assert (
        compared(later, changed(later, ("second", "{uid: int,", "{uid: u8,"))).findings
        == ()
    )


def test_a_renamed_group_is_known_by_what_is_in_it() -> None:
    new = {
        "types": TYPES,
        "second": SECOND,
        "primary": FIRST.replace("group: first", "group: primary"),
    }
    found = compared(ALL, new)
    assert rules(found) == ["GROUP_RENAMED"]
    assert found.findings[0].messages == (
        "primary.Direct", "primary.Inside", "primary.Other",
    )  # fmt: skip
    other = FIRST.replace("group: first", "group: primary").replace("tag", "tag")
    for name in ("Direct", "Other", "Inside"):
        other = other.replace(name, f"{name}New")
    assert sorted(rules(compared(ALL, {**new, "primary": other}))) == [
        "GROUP_ADDED",
        "GROUP_REMOVED",
    ]


def test_a_group_of_types_may_change_its_name() -> None:
    new = {
        "shared": TYPES.replace("group: types", "group: shared"),
        "first": FIRST.replace("[types]", "[shared]"),
        "second": SECOND.replace("[types]", "[shared]"),
    }
    finding = only(compared(ALL, new))
    assert (finding.change.rule.id, finding.severity, finding.breaks) == (
        "GROUP_RENAMED", WARNING, "source",
    )  # fmt: skip


def test_a_group_that_lost_its_messages_still_has_a_reader() -> None:
    types = "structs:\n  S: {fields: {x: int}}\n"
    old = {
        "g": f"group: g\nreceiver: r\nsenders: [s]\nmessages:\n  M: {{tag: 1}}\n{types}"
    }
    found = compared(old, {"g": f"group: g\n{types}"})
    assert rules(found) == ["MESSAGE_DELETED", "SENDERS_CHANGED"]
    assert found.findings[0].rollout == "all at once: r, s"


def test_a_since_is_not_judged_by_the_version_of_another_group() -> None:
    moved = {
        "types": "group: types\nimports: [more]\nstructs:\n  Outer: {fields: {inner: Inner, count: int}}\n",
        "more": "group: more\nversion: 2\nstructs:\n"
        "  Inner: {fields: {depth: int, more: {type: int, default: 0, since: 2}}}\n",
        "first": FIRST.replace("[types]", "[types, more]"),
        "second": SECOND,
    }
    found = compared(ALL, moved)
    assert "SINCE_WRONG_VERSION" not in rules(found)
    assert {"TYPE_MOVED", "FIELD_ADDED", "VERSION_LOWERED"} <= set(rules(found))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("'dict[str, float]', default: {a: 1.0}", "'dict[str, float]', default: {a: 1.5}", True),
        ("float, default: .nan", "float, default: .nan", False),
        ("Kind, default: small", "Kind, default: large", True),
        ("Kind?, default: null", "Kind?, default: small", True),
        ("'list[Kind]', default: [small]", "'list[Kind]', default: [large]", True),
        ("'tuple[int, Kind]', default: [1, small]", "'tuple[int, Kind]', default: [1, large]", True),
        ("'str | list[Kind]', default: [small]", "'str | list[Kind]', default: [large]", True),
        ("Part, default: {x: 1}", "Part, default: {x: 2}", True),
        ("Part, default: {x: 1}", "Part, default: {x: 1}", False),
        ("any, default: 1", "any, default: 1.0", True),
        ("any, default: 1", "any, default: true", True),
        ("bytes, default: ab", "bytes, default: ac", True),
        ("'dict[Kind, int]', default: {small: 1}", "'dict[Kind, int]', default: {large: 1}", True),
    ],
)  # fmt: skip
def test_a_default_is_compared_by_its_value(
    before: str, after: str, told: bool
) -> None:
    text = (
        "group: g\nreceiver: r\nmessages:\n  M:\n    tag: 1\n    fields:\n      f: {type: %s}\n"
        "structs:\n  Part: {fields: {x: int, k: {type: Kind, default: small}}}\n"
        "enums:\n  Kind: {values: {small: 0, large: 1}}\n"
    )
    found = compared({"g": text % before}, {"g": text % after})
    assert rules(found) == ["DEFAULT_CHANGED"] * told
    renamed = text.replace("small", "tiny").replace(
        "tiny: 0", "tiny: {value: 0, was: small}"
    )
    again = compared(
        {"g": text % before}, {"g": renamed % before.replace("small", "tiny")}
    )
    reached = "Kind" in before or "Part" in before
    assert rules(again) == ["ENUM_VALUE_RENAMED"] * reached


def test_a_fingerprint_that_nothing_explains_is_told_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def blind(*schemas: object) -> object:
        found = Walk(*schemas)  # type: ignore[arg-type]
        found.changes.clear()
        return found

    monkeypatch.setattr(diff_module, "Walk", blind)
    finding = only(
        compared(
            {"types": TYPES, "first": FIRST},
            {"types": TYPES, "first": FIRST.replace("uid: int", "uid: u8")},
        )
    )
    assert (finding.change.rule.id, finding.severity) == ("LAYOUT_CHANGED", "error")
    assert finding.new_reads_old == finding.old_reads_new == REFUSED


def test_orders_that_contradict_each_other_are_no_order() -> None:
    new = changed(
        ALL,
        ("second", "version: 2", "version: 3"),
        ("second", "messages:", "messages:\n  Fresh: {tag: 2, since: 3}"),
        ("first", "receiver: one", "version: 2\nreceiver: one"),
        ("first", "messages:", "messages:\n  New: {tag: 4, since: 2}"),
    )
    found = compared(ALL, new)
    assert [each.rollout for each in found.findings] == [
        "one, then two",
        "two, then one and three",
    ]
    assert {each.severity for each in found.findings} == {NOTE}
    assert (
        found.rollout == "one change after the other, or all at once: one, three, two"
    )
    assert [each.rollout for each in found.verdicts] == [
        "one, then two",
        "two, then one and three",
    ]


def test_a_process_that_sends_to_itself_and_senders_nobody_names() -> None:
    plan = Rollout()
    plan.add("one", ["one"], OK, BROKEN)
    assert plan.text() == "one, then what sends to one"
    plan = Rollout()
    plan.add("two", [], BROKEN, OK)
    plan.add("three", ["two"], BROKEN, OK)
    assert plan.text() == "what sends to two, then two, then three"


def test_rules_lists_every_rule_and_explain_explains_it() -> None:
    listed = CliRunner().invoke(main, ["rules"])
    assert listed.exit_code == 0
    for rule in RULES.values():
        assert any(
            line.split()[0] == rule.id for line in listed.stdout.splitlines() if line
        )
        name = rule.id.lower().replace("_", "-")
        for spelled in (rule.id, name):
            told = CliRunner().invoke(main, ["explain", spelled])
            assert told.exit_code == 0
            assert told.stdout.startswith(f"{rule.id}: ")
            assert "\nInstead: " in told.stdout
            assert all(len(line) <= 88 for line in told.stdout.splitlines())
    assert CliRunner().invoke(main, ["explain", "INT_CHANGE"]).stderr == (
        "error: there is no rule 'INT_CHANGE'; did you mean 'INT_CHANGED'?\n"
    )
    assert "msgen rules lists them" in CliRunner().invoke(main, ["explain", "x"]).stderr


def test_examples_of_rules_are_schemas_that_differ_as_told() -> None:
    """What `explain` shows as the safe way has no error of its own."""
    for rule in RULES.values():
        if not (rule.before and rule.after) or rule.before == rule.after:
            continue
        found = compared(*({"g": example(text)} for text in (rule.before, rule.after)))
        wrong = [
            each.change.rule.id for each in found.findings if each.severity == "error"
        ]
        assert wrong == [], rule.id


def example(text: str) -> str:
    """Make the lines of an example a whole schema."""
    lines = text.splitlines()
    version = [line for line in lines if line.startswith("version:")]
    rest = [line for line in lines if not line.startswith("version:")]
    body = "\n".join(rest)
    if body.startswith("fields:"):
        body = "messages:\n  M:\n    tag: 1\n" + "\n".join(
            f"    {line}" for line in rest
        )
    elif body.startswith("values:"):
        body = f"enums:\n  E:\n    {body}\nmessages:\n  M: {{tag: 1, fields: {{e: E}}}}"
    elif body.startswith("enums:"):
        body = f"{body}\nmessages:\n  M: {{tag: 1, fields: {{e: Reason}}}}"
    elif body.startswith("batch:") or not body:
        body = f"{body}\nmessages:\n  M: {{tag: 1}}"
    return "\n".join(["group: g", "receiver: r", *version, body, ""])


def test_another_message_in_a_field_and_a_longer_tuple() -> None:
    text = (
        "group: g\nreceiver: r\nmessages:\n  A: {tag: 1}\n  B: {tag: 2}\n"
        "  M: {tag: 3, fields: {m: 'list[A]', t: 'tuple[int, str]'}}\n"
    )
    found = compared({"g": text}, {"g": text.replace("[A]", "[B]")})
    assert only(found).change.text == (
        "field 'm' of message 'M' is 'list[B]', was 'list[A]' ('B', was 'A')"
    )
    longer = compared({"g": text}, {"g": text.replace("int, str", "int, str, int")})
    assert only(longer).change.rule.id == "FIELD_RETYPED"
