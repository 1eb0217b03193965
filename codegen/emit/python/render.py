"""The views of each module into its template; what is emitted looks as templates/*.j2 do."""

from __future__ import annotations

from collections.abc import Sequence

import jinja2
from msgen.codegen.emit.facts import Facts, has_tensors
from msgen.codegen.schema import model
from msgen.codegen.schema.names import base_name, union_name

from . import layout
from .classes import (
    class_options,
    codec_arguments,
    field_default,
    full_doc,
    table_entries,
)
from .functions import function_view
from .imports import sort_key
from .module import Module
from .types import annotation, tuple_text


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
    messages, records = group.live_messages, group.records
    return _TEMPLATES.get_template("module.py.j2").render(
        group=group,
        module=module,
        names=module.names,
        base=base_name(group.name),
        alias=union_name(group.name),
        public=sorted(_public_names(group), key=lambda name: sort_key(name, name)),
        messages=messages,
        encoders=[function_view(module, each, encoding=True) for each in records],
        decoders=[function_view(module, each, encoding=False) for each in records],
        table=table_entries(module),
        codec=codec_arguments(module) if messages else [],
        # Last, since these are the tables that the others asked for.
        dispatch_tables=list(module.dispatch_tables()),
    )


def _public_names(group: model.Group) -> list[str]:
    names = [enum.name for enum in group.enums]
    names += [record.name for record in group.records]
    if group.live_messages:
        names += [base_name(group.name), union_name(group.name), "CODEC"]
        names += ["encode", "decode", "encode_frames", "decode_frames"]
    return names


def _attributes(fields: Sequence[model.Field], owner: str) -> str:
    """Write the tuple of an object's fields."""
    return tuple_text(f"{owner}.{field.name}" for field in fields)


_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("msgen.codegen.emit.python"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    optimized=False,  # nothing in the templates is constant, and it takes 4 ms at each start
)
_TEMPLATES.globals.update(annotation=annotation, field_default=field_default)
_TEMPLATES.filters.update(
    attributes=_attributes,
    class_options=class_options,
    code=layout.code,
    docstring=layout.docstring,
    full_doc=full_doc,
    has_tensors=has_tensors,
    literal=layout.literal,
    nested=layout.nested,
)
