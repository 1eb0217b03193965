"""The views of each module into its template; what is emitted looks as templates/*.j2 do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jinja2
from msgen.codegen.emit.facts import Facts
from msgen.codegen.schema import model
from msgen.codegen.schema.names import base_name, union_name

from . import layout
from .classes import (
    ClassView,
    CodecView,
    EnumView,
    FieldView,
    TableView,
    class_view,
    codec_view,
    enum_view,
    table_view,
)
from .functions import FunctionView, decoder_view, encoder_view
from .imports import sort_key
from .module import DispatchView, Module
from .types import tuple_text


@dataclass(frozen=True)
class ModuleView:
    """All that stands in a group's module."""

    source: str
    doc: str
    receiver: str | None
    public: tuple[str, ...]
    """`__all__`, sorted."""
    enums: tuple[EnumView, ...]
    structs: tuple[ClassView, ...]
    messages: tuple[ClassView, ...]
    encoders: tuple[FunctionView, ...]
    decoders: tuple[FunctionView, ...]
    table: TableView
    codec: CodecView | None
    dispatch: tuple[DispatchView, ...]


def generate_python(facts: Facts) -> dict[str, str]:
    """Return the text of each module of the package, and of the package's own, by file name."""
    schema = facts.schema
    package = _TEMPLATES.get_template("package.py.j2").render(source=f"{schema.name}/")
    modules = {
        f"{name}.py": _render(facts, each) for name, each in schema.groups.items()
    }
    return {"__init__.py": package, **modules}


def _render(facts: Facts, group: model.Group) -> str:
    module = Module(facts, group)
    return _TEMPLATES.get_template("module.py.j2").render(
        module=_module_view(module),
        names=module.names,
        base=base_name(group.name),
        alias=union_name(group.name),
    )


def _module_view(module: Module) -> ModuleView:
    group = module.group
    messages, records = group.live_messages, group.records
    return ModuleView(
        source=f"{module.schema.name}/{group.name}.yaml",
        doc=group.doc,
        receiver=group.receiver,
        public=tuple(sorted(_public_names(group), key=sort_key)),
        enums=tuple(enum_view(module, each) for each in group.enums),
        structs=tuple(class_view(module, each) for each in group.structs),
        messages=tuple(class_view(module, each) for each in messages),
        encoders=tuple(encoder_view(module, each) for each in records),
        decoders=tuple(decoder_view(module, each) for each in records),
        table=table_view(module),
        codec=codec_view(module) if messages else None,
        dispatch=tuple(module.dispatch_tables()),
    )


def _public_names(group: model.Group) -> list[str]:
    names = [enum.name for enum in group.enums]
    names += [record.name for record in group.records]
    if group.live_messages:
        names += [base_name(group.name), union_name(group.name), "CODEC"]
        names += ["encode", "decode", "encode_frames", "decode_frames"]
    return names


def _attributes(fields: Sequence[FieldView], owner: str) -> str:
    """Write the tuple of an object's fields."""
    return tuple_text(f"{owner}.{field.name}" for field in fields)


_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("msgen.codegen.emit.python"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,
)
_TEMPLATES.filters.update(
    attributes=_attributes,
    code=layout.code,
    docstring=layout.docstring,
    literal=layout.literal,
    nested=layout.nested,
)
