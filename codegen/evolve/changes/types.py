"""Two types of one field: where they differ, and which of their readers takes whose values.

A writer of one version and a reader of the other need not have the same type: a `u8` is read as an
`int`. Each difference says for both directions whether every value that may be written is read as
what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from msgen.codegen.schema import model
from msgen.codegen.schema.model import INT_RANGES, Type, spell

from .change import Node, Ref


@dataclass(frozen=True)
class Delta:
    """A difference between two types.

    Attributes:
        key: the key of the field that holds it.
        counts: the fingerprint sees it.
    """

    rule: str
    old: str
    new: str
    new_takes_old: bool
    old_takes_new: bool
    key: str = "type"
    counts: bool = True


@dataclass(frozen=True)
class _Context:
    """Where in a type a part stands.

    Payloads of bytes and tensors are `inline` in alternatives of a union: elsewhere they may travel
    in a frame, and then their slot is an integer, which a union would take for one.
    """

    old_inline: bool = False
    new_inline: bool = False
    key: bool = False
    counts: bool = True


@dataclass(frozen=True)
class TypeComparer:
    """Compares types; declared types inside of them are handed to ``meet``.

    Attributes:
        meet: takes two declared types that stand at the same place, whether the fingerprint sees
            them there, and whether they are keys of a dict.
        is_paired: says whether two messages are one message in two versions.
        old_counts: says whether the old fingerprint sees a message among alternatives.
        new_counts: the same for the new one.
    """

    meet: Callable[[Node, bool, bool], None]
    is_paired: Callable[[model.MessageType, model.MessageType], bool]
    old_counts: Callable[[model.MessageType], bool]
    new_counts: Callable[[model.MessageType], bool]

    def compare(self, old: Type, new: Type) -> list[Delta]:
        return list(self._compare(old, new, _Context()))

    def _compare(self, old: Type, new: Type, at: _Context) -> Iterator[Delta]:
        if isinstance(old, model.AnyType) or isinstance(new, model.AnyType):
            yield from self._plain(old, new)
        elif isinstance(old, model.NullableType) or isinstance(new, model.NullableType):
            yield from self._nullable(old, new, at)
        elif isinstance(old, model.UnionType) or isinstance(new, model.UnionType):
            yield from self._union(old, new, at)
        elif _KIND.get(type(old)) != _KIND.get(type(new)):
            yield _retyped(old, new)
        else:
            yield from self._same_kind(old, new, at)

    def _plain(self, old: Type, new: Type) -> Iterator[Delta]:
        if old != new:
            yield replace(
                _retyped(old, new),
                new_takes_old=_is_plain(old) and isinstance(new, model.AnyType),
                old_takes_new=_is_plain(new) and isinstance(old, model.AnyType),
            )

    def _nullable(self, old: Type, new: Type, at: _Context) -> Iterator[Delta]:
        was, now = (isinstance(each, model.NullableType) for each in (old, new))
        if was != now:
            # A reader with a default takes nil for it, which is not the None that was written.
            yield Delta("NULLABLE_CHANGED", spell(old), spell(new), now, was)
        yield from self._compare(_bare(old), _bare(new), at)

    def _union(self, old: Type, new: Type, at: _Context) -> Iterator[Delta]:
        olds, news = list(_options(old)), list(_options(new))
        pairs = []
        for option in list(olds):
            match = next((each for each in news if self._matches(option, each)), None)
            if match is not None:
                olds.remove(option)
                news.remove(match)
                pairs.append((option, match))
        if not pairs:
            yield _retyped(old, new)
            return
        old_inline = at.old_inline or isinstance(old, model.UnionType)
        new_inline = at.new_inline or isinstance(new, model.UnionType)
        payload = old_inline != new_inline and any(
            _has_payload(each) for pair in pairs for each in pair
        )
        if olds or news or payload:
            later = (
                not olds
                and not payload
                and not any(_counts(each, self.new_counts) for each in news)
            )
            yield Delta(
                "UNION_EXTENDED" if later else "UNION_CHANGED",
                spell(old),
                spell(new),
                not olds and not (payload and new_inline),
                not news and not (payload and old_inline),
                counts=any(_counts(each, self.old_counts) for each in olds)
                or any(_counts(each, self.new_counts) for each in news),
            )
        for first, second in pairs:
            counts = _counts(first, self.old_counts) and _counts(
                second, self.new_counts
            )
            inner = _Context(old_inline, new_inline, at.key, at.counts and counts)
            yield from self._compare(first, second, inner)

    def _matches(self, old: Type, new: Type) -> bool:
        if isinstance(old, model.MessageType) and isinstance(new, model.MessageType):
            return self.is_paired(old, new)
        return _option_kind(old) == _option_kind(new)

    def _same_kind(self, old: Type, new: Type, at: _Context) -> Iterator[Delta]:
        if isinstance(old, model.IntType) and isinstance(new, model.IntType):
            if old.width != new.width:
                yield Delta(
                    "INT_CHANGED",
                    spell(old),
                    spell(new),
                    _holds(new, old),
                    _holds(old, new),
                )
        elif isinstance(old, model.FloatType) and isinstance(new, model.FloatType):
            yield from self._float(old, new)
        elif isinstance(old, model.TensorType) and isinstance(new, model.TensorType):
            yield from _tensor(old, new)
        elif isinstance(old, model.TupleType) and isinstance(new, model.TupleType):
            if len(old.items) != len(new.items):
                yield _retyped(old, new)
            else:
                for first, second in zip(old.items, new.items):
                    yield from self._compare(first, second, at)
        elif isinstance(old, model.ListType) and isinstance(new, model.ListType):
            yield from self._compare(old.item, new.item, at)
        elif isinstance(old, model.DictType) and isinstance(new, model.DictType):
            yield from self._compare(old.key, new.key, replace(at, key=True))
            yield from self._compare(old.value, new.value, at)
        elif isinstance(old, model.MessageType) and isinstance(new, model.MessageType):
            if self.is_paired(old, new):
                self.meet(Node(old, new), at.counts, at.key)
            else:
                yield _retyped(old, new)
        elif isinstance(old, Ref) and isinstance(new, Ref):
            self.meet(Node(old, new), at.counts, at.key)
        yield from _limit(old, new)

    def _float(self, old: model.FloatType, new: model.FloatType) -> Iterator[Delta]:
        if old.bits != new.bits:
            yield Delta(
                "FLOAT_CHANGED",
                spell(old),
                spell(new),
                new.bits > old.bits,
                old.bits > new.bits,
            )
        if old.finite != new.finite:
            yield Delta(
                "LIMIT_TIGHTENED" if new.finite else "LIMIT_LOOSENED",
                f"finite: {str(old.finite).lower()}",
                f"finite: {str(new.finite).lower()}",
                not new.finite,
                not old.finite,
                "finite",
                counts=False,
            )


def _counts(option: Type, test: Callable[[model.MessageType], bool]) -> bool:
    return not isinstance(option, model.MessageType) or test(option)


def _tensor(old: model.TensorType, new: model.TensorType) -> Iterator[Delta]:
    if old.dtype != new.dtype:
        # `any` writes the dtype's number, which the others do not.
        yield Delta("DTYPE_CHANGED", spell(old), spell(new), False, False)
    if old.dims is None or new.dims is None:
        if old.dims != new.dims:
            # `*` writes the dimensions of vectors too.
            any_of_old = new.dims is None and not old.is_vector
            any_of_new = old.dims is None and not new.is_vector
            yield Delta("RANK_CHANGED", spell(old), spell(new), any_of_old, any_of_new)
    elif len(old.dims) != len(new.dims):
        yield Delta("RANK_CHANGED", spell(old), spell(new), False, False)
    else:
        pairs = list(zip(old.dims, new.dims))
        if any(a != b for a, b in pairs if isinstance(a, int) or isinstance(b, int)):
            yield Delta(
                "DIM_CHANGED",
                spell(old),
                spell(new),
                all(isinstance(b, str) or a == b for a, b in pairs),
                all(isinstance(a, str) or a == b for a, b in pairs),
            )
    if old.device != new.device:
        yield Delta(
            "DEVICE_CHANGED",
            f"device: {old.device or 'none'}",
            f"device: {new.device or 'none'}",
            True,
            True,
            "device",
            counts=False,
        )


def _limit(old: Type, new: Type) -> Iterator[Delta]:
    was = getattr(old, "max_len", None)
    now = getattr(new, "max_len", None)
    if was == now:
        return
    tighter = now is not None and (was is None or now < was)
    yield Delta(
        "LIMIT_TIGHTENED" if tighter else "LIMIT_LOOSENED",
        f"max_len: {'none' if was is None else was}",
        f"max_len: {'none' if now is None else now}",
        not tighter,
        tighter,
        "max_len",
        counts=False,
    )


def _retyped(old: Type, new: Type) -> Delta:
    return Delta("FIELD_RETYPED", spell(old), spell(new), False, False)


def _holds(wide: model.IntType, narrow: model.IntType) -> bool:
    low, high = INT_RANGES[narrow.width]
    return INT_RANGES[wide.width][0] <= low and high <= INT_RANGES[wide.width][1]


def _bare(type_: Type) -> Type:
    return type_.item if isinstance(type_, model.NullableType) else type_


def _options(type_: Type) -> tuple[Type, ...]:
    return type_.options if isinstance(type_, model.UnionType) else (type_,)


def _is_plain(type_: Type) -> bool:
    """Say whether a reader of `any` gets the very values of a type.

    It does not where bytes may be in a frame, or where an `any` inside would nest one level deeper.
    """
    return all(
        isinstance(
            part,
            (
                model.BoolType,
                model.IntType,
                model.FloatType,
                model.StrType,
                model.ListType,
                model.NullableType,
                model.UnionType,
            ),
        )
        or (isinstance(part, model.DictType) and isinstance(part.key, model.StrType))
        for part in model.walk(type_)
    )


def _has_payload(type_: Type) -> bool:
    return any(
        isinstance(part, (model.BytesType, model.TensorType))
        for part in model.walk(type_)
    )


_KIND: dict[type[Type], str] = {
    model.BoolType: "bool",
    model.IntType: "int",
    model.FloatType: "float",
    model.StrType: "str",
    model.BytesType: "bytes",
    model.ListType: "list",
    model.TupleType: "tuple",
    model.DictType: "dict",
    model.StructType: "struct",
    model.EnumType: "enum",
    model.MessageType: "message",
    model.TensorType: "tensor",
}


def _option_kind(type_: Type) -> str:
    if isinstance(type_, model.TensorType) and type_.is_vector:
        return "vector"
    return _KIND[type(type_)]
