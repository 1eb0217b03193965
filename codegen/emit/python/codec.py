"""Emits what ties a module together: base class, union, dispatch tables, `CODEC` and its functions."""

from __future__ import annotations

from msgen.codegen.schema.names import base_name, union_name

from .context import ModuleContext
from .docstrings import add_docstring
from .layout import Code, Text, bracket, literal
from .table import RECORDS, table_name


def emit_base_class(context: ModuleContext) -> str:
    """Emit the class that all messages of the group derive from."""
    group = context.group
    union = union_name(group.name)
    names, buffer = context.names, context.frames("Buffer")
    code = Code()
    code.line(f"class {base_name(group.name)}:")
    with code.indented():
        add_docstring(
            code, f"Base class of the messages that the {group.receiver} receives."
        )
        code.blank()
        code.line("__slots__ = ()")
        code.blank()
        code.line("@staticmethod")
        code.line(f"def encoder(msg: {union}) -> {names.builtin('bytes')}:")
        with code.indented():
            add_docstring(code, "Encode a message of the group; the same as `encode`.")
            code.line("return CODEC.encode(msg)")
        code.blank()
        code.line("@staticmethod")
        code.line(f"def decoder(data: {buffer}) -> {union}:")
        with code.indented():
            add_docstring(code, "Decode a message of the group; the same as `decode`.")
            code.line("return CODEC.decode(data)")
    return "\n".join(code.lines)


def emit_union(context: ModuleContext) -> str:
    """Emit the alias of all messages of the group."""
    names = [message.name for message in context.group.live_messages]
    alias = context.names.use("typing", "TypeAlias")
    code = Code()
    head = f"{union_name(context.group.name)}: {alias} = "
    one_line = f"{head}{' | '.join(names)}"
    if code.fits(one_line) or len(names) == 1:
        code.line(one_line)
    else:
        code.chain(f"{head}(", names, "|", ")")
    return "\n".join(code.lines)


def emit_dispatch(context: ModuleContext) -> str:
    """Emit the tables that lead from classes and tags to functions."""
    everything = context.all_messages
    if everything:
        context.message_set("encode", everything)
        context.message_set("decode", everything)
    code = Code()
    for number, (name, (verb, refs)) in enumerate(context.message_sets.items()):
        if number:
            code.blank()
        kind = context.wire("Encoders" if verb == "encode" else "Decoders")
        final = context.names.use("typing", "Final")
        entries: list[Text] = []
        for ref in refs:
            key = ref.name if verb == "encode" else str(context.schema.message(ref).tag)
            entries.append(f"{key}: {context.function(verb, ref)}")
        code.statement(f"{name}: {final}[{kind}] = ", bracket("{", entries, "}"))
    return "\n".join(code.lines)


def emit_codec(context: ModuleContext) -> str:
    """Emit `CODEC` and the four functions of the module."""
    group = context.group
    everything = context.all_messages
    final, codec = (
        context.names.use("typing", "Final"),
        context.names.use("msgen.runtime.codec", "Codec"),
    )
    union = union_name(group.name)
    arguments: list[Text] = [
        f"group={literal(group.name)}",
        f"receiver={literal(group.receiver)}",
        f"version={group.version}",
        f"fingerprint={literal(context.facts.fingerprints.of(group))}",
        f"records={RECORDS}",
        f"encoders={context.message_set('encode', everything)}",
        f"decoders={context.message_set('decode', everything)}",
    ]
    former = context.facts.layouts.former(group, context.facts.fingerprints)
    if former:
        table = table_name(context)
        layouts = [
            bracket(
                f"{table}.Former(",
                [
                    literal(each.fingerprint),
                    literal(each.label),
                    literal(each.difference),
                ],
                ")",
            )
            for each in former
        ]
        arguments.append(bracket("former=[", layouts, "]"))
    removed = [message for message in group.messages if message.removed]
    if removed:
        entries = [f"{message.tag}: {literal(message.name)}" for message in removed]
        arguments.append(bracket("removed={", entries, "}"))
    arguments += [f"batch={each.name}" for each in group.live_messages if each.is_batch]
    code = Code()
    code.statement(
        f"CODEC: {final}[{codec}[{union}]] = ", bracket(f"{codec}(", arguments, ")")
    )
    for name in ("encode", "decode", "encode_frames", "decode_frames"):
        code.line(f"{name} = CODEC.{name}")
    return "\n".join(code.lines)
