"""Fingerprints of structs that hold themselves or one another."""

from __future__ import annotations

from pathlib import Path

from building import write_schema
from msgen.codegen import load_schema
from msgen.codegen.schema.fingerprint import Fingerprints


def print_of(folder: Path, structs: str) -> str:
    """The fingerprint of a group whose message holds the struct `A`."""
    return print_of_group(
        folder,
        "group: g\nreceiver: r\nmessages:\n  M: {tag: 1, fields: {x: A}}\n"
        f"structs:\n{structs}",
    )


def print_of_group(folder: Path, *texts: str) -> str:
    """The fingerprint of the last of some groups."""
    files = {f"{text.split()[1]}.yaml": text for text in texts}
    schema = load_schema(write_schema(folder / "schema", files))
    return Fingerprints(schema).of(schema.groups[texts[-1].split()[1]])


def test_a_recursive_struct_counts_by_content(tmp_path: Path) -> None:
    first = print_of(tmp_path, "  A: {fields: {next: A?}}\n")
    assert first == print_of(tmp_path, "  A: {doc: Same., fields: {next: A?}}\n")
    assert first != print_of(tmp_path, "  A: {fields: {next: 'list[A]'}}\n")
    assert first != print_of(
        tmp_path, "  A: {fields: {next: B?}}\n  B: {fields: {x: int}}\n"
    )


def test_structs_that_hold_each_other_count_by_content(tmp_path: Path) -> None:
    pair = "  A: {fields: {b: B?}}\n  B: {fields: {a: A?, n: int}}\n"
    assert print_of(tmp_path, pair) == print_of(
        tmp_path, pair.replace(" B", " Renamed").replace("A?", "A?")
    )
    assert print_of(tmp_path, pair) != print_of(
        tmp_path, pair.replace("n: int", "n: u8")
    )


def test_a_struct_of_many_structs_takes_no_time(tmp_path: Path) -> None:
    # Written out in full, each level would double the text.
    levels = "".join(
        f"  S{n}: {{fields: {{left: S{n + 1}, right: S{n + 1}}}}}\n" for n in range(200)
    )
    structs = "  A: {fields: {s: S0}}\n" + levels
    ends = [f"  S200: {{fields: {{x: {type_}}}}}\n" for type_ in ("int", "u8", "S200?")]
    assert len({print_of(tmp_path, structs + end) for end in ends}) == 3


def test_two_structs_of_one_content_are_one(tmp_path: Path) -> None:
    twice = "  A: {fields: {b: B, c: C}}\n  B: {fields: {x: int}}\n  C: {fields: {x: int}}\n"
    once = "  A: {fields: {b: B, c: B}}\n  B: {fields: {x: int}}\n"
    assert print_of(tmp_path, twice) == print_of(tmp_path, once)


def test_the_order_of_alternatives_does_not_count(tmp_path: Path) -> None:
    assert print_of(tmp_path, "  A: {fields: {x: int | str}}\n") == print_of(
        tmp_path, "  A: {fields: {x: str | int}}\n"
    )


def test_the_order_in_which_structs_are_met_does_not_count(tmp_path: Path) -> None:
    structs = (
        "  A: {{fields: {{x: '{0} | {1}'}}}}\n"
        "  L: {{fields: {{right: R?}}}}\n"
        "  R: {{fields: {{left: L?}}}}\n"
    )
    options = ("list[L]", "dict[str, R]")
    assert print_of(tmp_path, structs.format(*options)) == print_of(
        tmp_path, structs.format(*reversed(options))
    )


def test_structs_that_all_hold_each_other_take_no_time(tmp_path: Path) -> None:
    def structs(type_: str) -> str:
        text = "  A: {fields: {s: S0}}\n"
        for n in range(30):
            fields = ", ".join(f"f{m}: S{m}?" for m in range(30))
            text += f"  S{n}: {{fields: {{{fields}, own: 'tuple[{', '.join(['int'] * (n + 1))}]'}}}}\n"
        return text.replace("tuple[int, int]", f"tuple[int, {type_}]")

    assert print_of(tmp_path, structs("int")) != print_of(tmp_path, structs("u8"))
    assert print_of(tmp_path, structs("int")) == print_of(tmp_path, structs("i64"))


def test_a_struct_in_a_circle_is_told_from_one_that_only_looks_alike(
    tmp_path: Path,
) -> None:
    circle = "  A: {fields: {n: B?}}\n  B: {fields: {n: C?}}\n  C: {fields: {n: A?}}\n"
    ended = circle.replace(
        "  C: {fields: {n: A?}}\n", "  C: {fields: {n: D?}}\n  D: {fields: {x: int}}\n"
    )
    assert print_of(tmp_path, circle) != print_of(tmp_path, ended)
    # Three alike in a circle are one that holds itself.
    assert print_of(tmp_path, circle) == print_of(tmp_path, "  A: {fields: {n: A?}}\n")


def test_a_message_inside_a_struct_of_another_group_counts(tmp_path: Path) -> None:
    inner = (
        "group: a\nreceiver: r\nmessages:\n  In: {tag: 1, fields: {x: int, y: int}}\n"
        "structs:\n  S: {fields: {m: In}}\n"
    )
    outer = "group: b\nreceiver: q\nimports: [a]\nmessages:\n  Out: {tag: 1, fields: {s: S}}\n"

    swapped = inner.replace("{x: int, y: int}", "{y: int, x: int}")
    assert print_of_group(tmp_path, inner, outer) != print_of_group(
        tmp_path, swapped, outer
    )
    added = inner.replace("y: int", "y: int, z: {type: int, default: 0, since: 2}")
    assert print_of_group(tmp_path, inner, outer) == print_of_group(
        tmp_path, added.replace("group: a", "group: a\nversion: 2"), outer
    )


def test_messages_that_hold_each_other_count_by_content(tmp_path: Path) -> None:
    text = (
        "group: g\nreceiver: r\nbatch: {name: Batch, tag: 0}\nmessages:\n"
        "  A: {tag: 1, fields: {b: 'list[B | Batch]'}}\n  B: {tag: 2, fields: {a: A?}}\n"
    )

    assert print_of_group(tmp_path, text) == print_of_group(
        tmp_path, text.replace("B | Batch", "Batch | B")
    )
    assert print_of_group(tmp_path, text) != print_of_group(
        tmp_path, text.replace("A?", "'list[A]'")
    )
    more = (
        text.replace("group: g", "group: g\nversion: 2") + "  C: {tag: 3, since: 2}\n"
    )
    assert print_of_group(tmp_path, text) == print_of_group(tmp_path, more)


def test_a_union_that_a_later_version_made_is_the_type_it_was(tmp_path: Path) -> None:
    text = (
        "group: g\nversion: 2\nreceiver: r\nmessages:\n"
        "  A: {tag: 1}\n  H: {tag: 2, fields: {x: 'list[A]'}}\n"
    )

    later = text.replace("list[A]", "list[A | B]") + "  B: {tag: 3, since: 2}\n"
    assert print_of_group(tmp_path, text) == print_of_group(tmp_path, later)
