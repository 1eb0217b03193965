"""Emits decoders: straight-line functions from unpacked arrays to objects.

msgpack has built the array already, of its own classes only; a decoder tests each slot and makes
the object. Whatever fails raises `Unfit`, and the table-driven codec says where and why.
"""

from __future__ import annotations

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type

from .classes import is_keyword_only, value_text
from .context import ModuleContext, local_name
from .layout import Code, Text, bracket, flat, tuple_of
from .symbols import add_symbol_tests, shared_symbols
from .values import ValueEmitter


def emit_decoder(context: ModuleContext, record: model.Record) -> str:
    """Emit the decoder of a struct or message, and behind it the helpers it needs."""
    emitter = _Decoder(context, record)
    emitter.emit()
    return "\n\n\n".join(("\n".join(emitter.code.lines), *emitter.helpers))


class _Decoder(ValueEmitter):
    encoding = False
    verb = "decode"

    def emit(self) -> None:
        context, record, code = self.context, self.record, self.code
        any_ = context.names.use("typing", "Any")
        parameters = [f"slots: {any_}"]
        if context.needs_frames(record):
            parameters.append(f"frames: {self.frames_class()} | None")
        if context.has_depth(record):
            parameters.append(f"depth: int = {context.wire('MAX_DEPTH')}")
        name = f"_decode_{context.snake(record)}"
        code.statement(
            "", bracket(f"def {name}(", parameters, ")"), f" -> {record.name}:"
        )
        with code.indented():
            if context.is_recursive(record):
                self.checker.refuse(["depth == 0"])
            self._unpack()
            arguments = [self._argument(field) for field in record.live_fields]
            if is_keyword_only(record):
                arguments = [
                    f"{field.name}={flat(argument)}"
                    for field, argument in zip(
                        record.live_fields, arguments, strict=True
                    )
                ]
            call = bracket(f"{record.name}(", arguments, ")")
            if shared_symbols(record):
                code.statement("msg = ", call)
                add_symbol_tests(self.checker, record, "msg")
                code.line("return msg")
            else:
                code.statement("return ", call)

    def _unpack(self) -> None:
        """Write the statements that spread the array over local variables."""
        record, code = self.record, self.code
        is_message = isinstance(record, model.Message)
        count = len(record.fields) + is_message
        padding = [self._padding(field) for field in record.fields if field.since > 1]
        fit = self.context.wire("fit")
        arguments = f"slots, {count}" + (
            f", {tuple_of(padding).flat}" if padding else ""
        )
        code.line(f"if type(slots) is not list or len(slots) != {count}:")
        with code.indented():
            code.line(f"slots = {fit}({arguments})")
        targets: list[Text] = ["tag"] if is_message else []
        targets += [
            "_" if field.removed else local_name(field.name) for field in record.fields
        ]
        if not targets or set(targets) == {"_"}:
            return
        one_line = f"{', '.join(map(flat, targets))} = slots"
        if len(targets) == 1:
            code.line(f"({targets[0]},) = slots")
        elif code.fits(one_line):
            code.line(one_line)
        else:
            code.statement("", bracket("(", targets, ")"), " = slots")
        if is_message:
            # True and 1.0 are found in a dict of tags as well as 1 is.
            self.checker.refuse(["type(tag) is not int"])

    def _padding(self, field: model.Field) -> str:
        """The slot to put where an older writer wrote none: nil, unless nil is a value."""
        assert field.default is not None
        if _is_nil_a_value(field.type) and field.default.value is not None:
            return self.context.wire("MISSING")
        return "None"

    def _argument(self, field: model.Field) -> Text:
        """Write the statements of one field and return the expression of its value."""
        variable = local_name(field.name)
        default = None
        absent = "None"
        if field.default is not None:
            text = value_text(self.context, field.default.value, field.type)
            if not _is_nil_a_value(field.type):
                default = text
            elif field.since > 1 and field.default.value is not None:
                default = text
                absent = self.context.wire("MISSING")
        tests = self.checker.scalar_tests(variable, field.type)
        plain = self.checker.is_plain(field.type)
        if default is None:
            if plain:
                self.checker.check(variable, field.type)
                return variable
            return self.expression(variable, field.type, (field.name,))
        if plain and tests is not None and absent == "None":
            self._defaulted_scalar(variable, tests, default)
            return variable
        self.code.line(f"if {variable} is {absent}:")
        with self.code.indented():
            self.code.statement(f"{variable} = ", default)
        self.code.line("else:")
        with self.code.indented():
            if plain:
                self.checker.check(variable, field.type)
            else:
                value = self.expression(variable, field.type, (field.name,))
                self.code.statement(f"{variable} = ", value)
        return variable

    def _defaulted_scalar(self, variable: str, tests: list[str], default: Text) -> None:
        """Test the class first: nil, the sign for the default, is the rare case."""
        code = self.code
        code.clause("if", tests[:1], "or")
        with code.indented():
            self.checker.refuse([f"{variable} is not None"])
            code.statement(f"{variable} = ", default)
        if tests[1:]:
            code.clause("elif", tests[1:], "or")
            self.checker.raise_unfit()

    def scalar(self, value: str, type_: Type) -> str:
        wire = self.context.wire
        if isinstance(type_, model.EnumType):
            table = self.context.members_by_number(type_)
            unknown = self.context.schema.enum(type_).unknown
            fallback = (
                ""
                if unknown is None
                else f", {self.context.class_name(type_)}.{unknown}"
            )
            return f"{wire('decode_member')}({value}, {table}{fallback})"
        if isinstance(type_, model.StrType):
            limit = "" if type_.max_len is None else f", {type_.max_len}"
            return f"{wire('as_str')}({value}{limit})"
        if isinstance(type_, model.IntType):
            low, high = self.checker.int_limits(type_)
            return f"{wire('as_int')}({value}, {low}, {high})"
        if isinstance(type_, model.FloatType):
            number = f"{wire('decode_float')}({value})"
            if type_.finite:
                number = f"{wire('as_finite')}({number})"
            return f"{wire('as_f32')}({number})" if type_.bits == 32 else number
        return f"{wire('as_bool')}({value})"

    def tuple_body(
        self, code: Code, type_: model.TupleType, path: tuple[str, ...], inline: bool
    ) -> None:
        self.checker.refuse(
            ["type(value) is not list", f"len(value) != {len(type_.items)}"]
        )
        items = [
            self.expression(f"value[{index}]", item, (*path, str(index)), inline)
            for index, item in enumerate(type_.items)
        ]
        code.statement("return ", tuple_of(items))

    def message_set(self, value: str, refs: tuple[model.MessageType, ...]) -> str:
        # What is no list either has no item 0 or is refused by the decoder it leads to.
        table = self.context.message_set("decode", refs)
        arguments = [value, "frames", *self.depth_argument()]
        return f"{table}[{value}[0]]({', '.join(arguments)})"

    def option_test(self, option: Type, refs: tuple[model.MessageType, ...]) -> str:
        if isinstance(option, model.MessageType):
            return "type(value) is list"
        return self.checker.kind_test("value", option)

    def frames_class(self) -> str:
        return self.context.frames("FrameReader")


def _is_nil_a_value(type_: Type) -> bool:
    return isinstance(type_, (model.NullableType, model.AnyType))
