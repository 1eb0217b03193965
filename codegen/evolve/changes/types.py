"""Two types of one field: where they differ, and which of their readers takes whose values.

A writer of one version and a reader of the other need not have the same type: a `u8` is read as an
`int`. Each difference says for both directions whether every value that may be written is read as
what it was. Numbers, limits and tensors have their rules in `scalars` and `tensors`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type
from msgen.codegen.schema.rule import NOTE, WARNING

from .change import ADD_ANOTHER, COUNTED, ChangeRule, Delta, Node, Ref, find_all
from .pairs import Both
from .scalars import FLOAT_CHANGED, INT_CHANGED, LIMITS
from .tensors import OF_TENSORS

_OF_KIND: dict[type[Type], tuple[ChangeRule, ...]] = {
    model.IntType: (INT_CHANGED,),
    model.FloatType: (FLOAT_CHANGED, *LIMITS),
    model.TensorType: (*OF_TENSORS, *LIMITS),
}
"""The rules about two types of one kind; all that have `max_len` have limits."""


@dataclass(frozen=True)
class Held:
    """A declared type that a field holds in both versions.

    Attributes:
        counts: the fingerprint sees it there, as long as it sees the field's record.
        is_key: it is the key of a dict.
    """

    field: Both[model.Field]
    node: Node
    counts: bool
    is_key: bool


@dataclass(frozen=True)
class _Where:
    """Where in the type of a field a part stands.

    Payloads of bytes and tensors are inline in alternatives of a union: elsewhere they may travel
    in a frame, and then their slot is an integer, which a union would take for one.
    """

    field: Both[model.Field]
    counts: bool
    is_key: bool = False
    inline: tuple[bool, bool] = (False, False)
    """In the old version, and in the new one."""


@dataclass(frozen=True)
class TypeDiffer:
    """Finds how the types of fields of two schemas differ.

    Attributes:
        new_of: messages that are one message in both versions.
    """

    old: model.Schema
    new: model.Schema
    new_of: Mapping[model.MessageType, model.MessageType]

    def diff(self, field: Both[model.Field]) -> Iterator[Delta | Held]:
        """Yield the differences, and the declared types that are in both."""
        at = _Where(field, field.old.since == field.new.since == 1)
        return self._parts(field.old.type, field.new.type, at)

    def _parts(self, old: Type, new: Type, at: _Where) -> Iterator[Delta | Held]:
        kinds = {type(old), type(new)}
        if model.AnyType in kinds and old == new:
            return
        if model.NullableType in kinds and model.AnyType not in kinds:
            yield from nullable_changed(old, new)
            yield from self._parts(_bare(old), _bare(new), at)
        elif model.UnionType in kinds and model.AnyType not in kinds:
            yield from self.union_changed(old, new, at)
        elif len(kinds) > 1 or not self._comparable(old, new):
            yield from field_retyped(old, new)
        elif isinstance(old, Ref) and isinstance(new, Ref):
            yield Held(at.field, Node(old, new), at.counts, at.is_key)
        else:
            is_dict = isinstance(old, model.DictType)
            pairs = zip(model.children(old), model.children(new))
            for index, (first, second) in enumerate(pairs):
                here = replace(at, is_key=True) if is_dict and not index else at
                yield from self._parts(first, second, here)
            yield from find_all(_OF_KIND.get(type(old), LIMITS), old, new)

    def _comparable(self, old: Type, new: Type) -> bool:
        """Say whether two types of one kind are looked into; else they count as two kinds."""
        if isinstance(old, model.MessageType):
            return self.new_of.get(old) == new
        return not isinstance(old, model.TupleType) or (
            len(model.children(old)) == len(model.children(new))
        )

    def union_changed(self, old: Type, new: Type, at: _Where) -> Iterator[Delta | Held]:
        gone, fresh = list(_options(old)), list(_options(new))
        pairs = []
        for option in list(gone):
            match = next((each for each in fresh if self._matches(option, each)), None)
            if match is not None:
                gone.remove(option)
                fresh.remove(match)
                pairs.append((option, match))
        if not pairs:
            yield from field_retyped(old, new)
            return
        unions = (isinstance(each, model.UnionType) for each in (old, new))
        old_inline, new_inline = (a or b for a, b in zip(at.inline, unions))
        # One that both have may be in a frame in one of them.
        payload = old_inline != new_inline and any(
            _has_payload(each) for pair in pairs for each in pair
        )
        if gone or fresh or payload:
            counts = any(_counts(each, self.new) for each in fresh)
            later = not gone and not payload and not counts
            rule = UNION_EXTENDED if later else UNION_CHANGED
            new_takes = not gone and not (payload and new_inline)
            old_takes = not fresh and not (payload and old_inline)
            counts = counts or any(_counts(each, self.old) for each in gone)
            takes = (new_takes, old_takes)
            yield Delta(rule, old, new, takes, counts=counts, source=not later)
        for first, second in pairs:
            counts = _counts(first, self.old) and _counts(second, self.new)
            inline = (old_inline, new_inline)
            here = replace(at, inline=inline, counts=at.counts and counts)
            yield from self._parts(first, second, here)

    def _matches(self, old: Type, new: Type) -> bool:
        """Say whether two alternatives are one, as readers tell alternatives apart."""
        if isinstance(old, model.MessageType):
            return self.new_of.get(old) == new
        return type(old) is type(new) and _is_vector(old) == _is_vector(new)


UNION_CHANGED = ChangeRule(
    "UNION_CHANGED",
    "a union has more or fewer alternatives",
    f"{COUNTED}the side without an alternative refuses it, and a payload that may travel in a "
    "frame is taken for an integer, since in a union it may not.",
    "upgrade the side that reads the wider union first, or add a field at the end.",
    finder=TypeDiffer.union_changed,
    misread=True,
)
UNION_EXTENDED = ChangeRule(
    "UNION_EXTENDED",
    "a union takes one more message, which was added later",
    "Messages with `since` are not in the fingerprint, and may join a union without changing "
    "it. Readers that do not know the message refuse all of the one that holds it.",
    "send the new message there when all readers know it: upgrade the receiver first.",
    finder=TypeDiffer.union_changed,
    severity=WARNING,
    harmless=NOTE,
    before="messages:\n  Plan: {tag: 1, fields: {steps: 'list[Run]'}}\n  Run: {tag: 2}",
    after="version: 2\nmessages:\n  Plan: {tag: 1, fields: {steps: 'list[Run | Wait]'}}\n"
    "  Run: {tag: 2}\n  Wait: {tag: 3, since: 2}",
)


def field_retyped(old: Type, new: Type) -> Iterator[Delta]:
    """Yield that a type is of another kind; only a reader of `any` may take its values."""
    any_of_old = isinstance(new, model.AnyType) and _is_plain(old)
    any_of_new = isinstance(old, model.AnyType) and _is_plain(new)
    yield Delta(FIELD_RETYPED, old, new, (any_of_old, any_of_new), source=True)


FIELD_RETYPED = ChangeRule(
    "FIELD_RETYPED",
    "a field is of another kind of type",
    f"{COUNTED}peers refuse the message, or read something else in it.",
    ADD_ANOTHER,
    finder=field_retyped,
    before="fields:\n  stop: {type: str, default: ''}",
    after="version: 2\nfields:\n  stop: {type: str, default: '', removed: true}\n"
    "  stops: {type: 'list[str]', default: [], since: 2}",
    misread=True,
)


def nullable_changed(old: Type, new: Type) -> Iterator[Delta]:
    was, now = (isinstance(each, model.NullableType) for each in (old, new))
    if was != now:
        # A reader with a default takes nil for it, which is not the None that was written.
        yield Delta(NULLABLE_CHANGED, old, new, (now, was), source=True)


NULLABLE_CHANGED = ChangeRule(
    "NULLABLE_CHANGED",
    "a type became nullable, or is no longer",
    f"{COUNTED}the side that knows no None refuses it, or takes it for the field's default.",
    "make a new field nullable; keep an old one as it is, with a value that means nothing.",
    finder=nullable_changed,
    misread=True,
)


def _bare(type_: Type) -> Type:
    return type_.item if isinstance(type_, model.NullableType) else type_


def _options(type_: Type) -> tuple[Type, ...]:
    return type_.options if isinstance(type_, model.UnionType) else (type_,)


def _counts(option: Type, schema: model.Schema) -> bool:
    """Say whether the fingerprint sees an alternative of a union."""
    return (
        not isinstance(option, model.MessageType) or schema.message(option).since == 1
    )


def _is_vector(type_: Type) -> bool:
    return isinstance(type_, model.TensorType) and type_.is_vector


_PLAIN = (
    model.BoolType,
    model.IntType,
    model.FloatType,
    model.StrType,
    model.ListType,
    model.NullableType,
    model.UnionType,
)


def _is_plain(type_: Type) -> bool:
    """Say whether a reader of `any` gets the very values of a type.

    It does not where bytes may be in a frame, or where an `any` inside would nest one level deeper.
    """
    return all(
        isinstance(part, _PLAIN)
        or (isinstance(part, model.DictType) and isinstance(part.key, model.StrType))
        for part in model.walk(type_)
    )


def _has_payload(type_: Type) -> bool:
    return any(
        isinstance(part, (model.BytesType, model.TensorType))
        for part in model.walk(type_)
    )
