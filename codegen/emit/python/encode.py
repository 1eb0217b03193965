"""Emits encoders: straight-line functions from objects to the slots of their arrays.

An encoder tests every value for exactly the type and range that its field declares. Whatever
fails a test raises `Unfit`, and the runtime's table-driven codec then either converts the value
(a numpy scalar in a list, a subclass) or raises EncodeError with the path.
"""

from __future__ import annotations

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type

from .context import ModuleContext, local_name
from .layout import Code, Text, bracket
from .symbols import add_symbol_tests
from .values import ValueEmitter


def emit_encoder(context: ModuleContext, record: model.Record) -> str:
    """Emit the encoder of a struct or message, and behind it the helpers it needs."""
    emitter = _Encoder(context, record)
    emitter.emit()
    return "\n\n\n".join(("\n".join(emitter.code.lines), *emitter.helpers))


class _Encoder(ValueEmitter):
    encoding = True
    verb = "encode"

    def emit(self) -> None:
        context, record, code = self.context, self.record, self.code
        is_message = isinstance(record, model.Message)
        argument = "msg" if is_message else "struct"
        parameters = [f"{argument}: {record.name}"]
        if context.needs_frames(record):
            parameters.append(f"frames: {self.frames_class()} | None")
        if context.has_depth(record):
            parameters.append(f"depth: int = {context.wire('MAX_DEPTH')}")
        any_ = context.names.use("typing", "Any")
        name = f"_encode_{context.snake(record)}"
        code.statement(
            "", bracket(f"def {name}(", parameters, ")"), f" -> list[{any_}]:"
        )
        with code.indented():
            if not is_message:
                self.checker.refuse([f"type({argument}) is not {record.name}"])
            if context.is_recursive(record):
                self.checker.refuse(["depth == 0"])
            slots: list[Text] = (
                [str(record.tag)] if isinstance(record, model.Message) else []
            )
            slots += [self._slot(argument, field) for field in record.fields]
            add_symbol_tests(self.checker, record, argument)
            code.statement("return ", bracket("[", slots, "]"))

    def _slot(self, argument: str, field: model.Field) -> Text:
        """Write the statements of one field and return the expression of its slot."""
        if field.removed:
            return "None"
        variable = local_name(field.name)
        checker = self.checker
        plain = checker.is_plain(field.type)
        if not plain and not checker.is_single(field.type):
            if isinstance(field.type, (model.NullableType, model.UnionType)):
                self.code.line(f"{variable} = {argument}.{field.name}")
                return self.expression(variable, field.type, (field.name,))
            return self.expression(
                f"{argument}.{field.name}", field.type, (field.name,)
            )
        self.code.line(f"{variable} = {argument}.{field.name}")
        conversion = self._conversion(variable, field.type)
        tests = checker.scalar_tests(variable, field.type)
        if conversion is None or tests is None:
            checker.check(variable, field.type)
        elif isinstance(field.type, model.FloatType):
            # An int is accepted for a float, and often given; the limits hold after that.
            self.code.clause("if", tests[:1], "or")
            with self.code.indented():
                self.code.line(conversion)
            if tests[1:]:
                checker.refuse(tests[1:])
        else:
            self.code.clause("if", tests, "or")
            with self.code.indented():
                self.code.line(conversion)
        return variable if plain else f"{self.context.wire('Single')}({variable})"

    def _conversion(self, variable: str, type_: Type) -> str | None:
        """Return the statement that converts a number of another class, or raises Unfit."""
        if isinstance(type_, (model.BoolType, model.IntType, model.FloatType)):
            return f"{variable} = {self._number(variable, type_)}"
        return None

    def _number(self, value: str, type_: Type) -> str:
        if isinstance(type_, model.IntType):
            low, high = self.checker.int_limits(type_)
            return f"{self.context.wire('as_int')}({value}, {low}, {high})"
        name = "as_float" if isinstance(type_, model.FloatType) else "as_bool"
        return f"{self.context.wire(name)}({value})"

    def scalar(self, value: str, type_: Type) -> str:
        wire = self.context.wire
        if isinstance(type_, model.EnumType):
            return f"{wire('as_member')}({value}, {self.context.class_name(type_)})"
        if isinstance(type_, model.StrType):
            limit = "" if type_.max_len is None else f", {type_.max_len}"
            return f"{wire('as_str')}({value}{limit})"
        number = self._number(value, type_)
        if isinstance(type_, model.FloatType):
            if type_.finite:
                number = f"{wire('as_finite')}({number})"
            if type_.bits == 32:
                number = f"{wire('Single')}({wire('as_f32')}({number}))"
        return number

    def tuple_body(
        self, code: Code, type_: model.TupleType, path: tuple[str, ...], inline: bool
    ) -> None:
        self.checker.refuse(
            ["type(value) is not tuple", f"len(value) != {len(type_.items)}"]
        )
        items = [
            self.expression(f"value[{index}]", item, (*path, str(index)), inline)
            for index, item in enumerate(type_.items)
        ]
        code.statement("return ", bracket("[", items, "]"))

    def message_set(self, value: str, refs: tuple[model.MessageType, ...]) -> str:
        table = self.context.message_set("encode", refs)
        arguments = [value, "frames"]
        if self.context.has_deep_messages:
            arguments += self.depth_argument()
        return f"{table}[type({value})]({', '.join(arguments)})"

    def option_test(self, option: Type, refs: tuple[model.MessageType, ...]) -> str:
        if isinstance(option, model.MessageType):
            return f"type(value) in {self.context.message_set('encode', refs)}"
        if isinstance(option, model.TensorType):
            dtype = (
                "None" if option.dtype == "any" else self.context.dtype(option.dtype)
            )
            rank = None if option.dims is None else len(option.dims)
            return f"{self.context.tensors('is_tensor')}(value, {dtype}, {rank})"
        return self.checker.kind_test("value", option)

    def frames_class(self) -> str:
        return self.context.frames("FrameWriter")
