"""Tensors in two versions: dtypes, dimensions, and which of them share one size.

Names of dimension symbols mean nothing to a peer. What counts is which dimensions of one message
share one: which sizes a reader wants equal, and a writer keeps equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type, spell
from msgen.codegen.schema.rule import NOTE, WARNING

from .change import ADD_ANOTHER, COUNTED, NEITHER, Change, ChangeRule, Delta
from .pairs import Both


def dtype_changed(old: model.TensorType, new: model.TensorType) -> Iterator[Delta]:
    if old.dtype != new.dtype:
        # `any` writes the dtype's number, which the others do not.
        yield Delta(DTYPE_CHANGED, old, new, NEITHER)


DTYPE_CHANGED = ChangeRule(
    "DTYPE_CHANGED",
    "a tensor has another dtype",
    f"{COUNTED}the bytes of one dtype are read as those of another where the length fits.",
    ADD_ANOTHER,
    finder=dtype_changed,
    misread=True,
)


def rank_changed(old: model.TensorType, new: model.TensorType) -> Iterator[Delta]:
    ranks = [None if each.dims is None else len(each.dims) for each in (old, new)]
    if ranks[0] != ranks[1]:
        # `*` writes the dimensions of vectors too.
        any_of_old = new.dims is None and not old.is_vector
        any_of_new = old.dims is None and not new.is_vector
        yield Delta(RANK_CHANGED, old, new, (any_of_old, any_of_new))


RANK_CHANGED = ChangeRule(
    "RANK_CHANGED",
    "a tensor has more or fewer dimensions",
    f"{COUNTED}the dimensions are refused, or not found where they are looked for.",
    ADD_ANOTHER,
    finder=rank_changed,
    misread=True,
)


def dim_changed(old: model.TensorType, new: model.TensorType) -> Iterator[Delta]:
    pairs = list(zip(old.dims or (), new.dims or ()))
    same_rank = len(old.dims or ()) == len(new.dims or ())
    if same_rank and any(a != b for a, b in pairs if int in (type(a), type(b))):
        any_of_old = all(isinstance(b, str) or a == b for a, b in pairs)
        any_of_new = all(isinstance(a, str) or a == b for a, b in pairs)
        yield Delta(DIM_CHANGED, old, new, (any_of_old, any_of_new))


DIM_CHANGED = ChangeRule(
    "DIM_CHANGED",
    "a dimension of a tensor has another fixed size, or became one",
    f"{COUNTED}the side with the fixed size refuses tensors of other sizes.",
    "use a symbol for sizes that may change.",
    finder=dim_changed,
)


def device_changed(old: model.TensorType, new: model.TensorType) -> Iterator[Delta]:
    if old.device != new.device:
        was, now = (f"device: {each.device or 'none'}" for each in (old, new))
        yield Delta(DEVICE_CHANGED, was, now, (True, True), "device", counts=False)


DEVICE_CHANGED = ChangeRule(
    "DEVICE_CHANGED",
    "`device` of a tensor field changed",
    "The device is no matter of the wire; it tells the receiving worker where to put the "
    "tensor.",
    "nothing to do.",
    finder=device_changed,
    severity=NOTE,
    harmless=NOTE,
)

_Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True)
class _Dim:
    """A dimension of a tensor in a record; ``many`` where a value may hold several of the tensor."""

    path: _Path
    size: int | str
    many: bool

    def wants_equal(self, other: _Dim) -> bool:
        """Say whether a reader refuses tensors whose two sizes differ."""
        return isinstance(self.size, str) and self.keeps_equal(other)

    def keeps_equal(self, other: _Dim) -> bool:
        """Say whether a writer refuses tensors whose two sizes differ."""
        return self.size == other.size and self.size != "_"


def dim_symbol_changed(alive: Sequence[Both[model.Field]]) -> Iterator[Change]:
    """Yield dimensions that only one version ties together, once for each field and version.

    Args:
        alive: the fields of a record that are alive in both versions.
    """
    if all(each.old.type == each.new.type for each in alive):
        return
    olds = _dims([each.old for each in alive])
    news = _dims([each.new for each in alive])
    common = [path for path in olds if path in news]
    couples = [*combinations(common, 2)]
    couples += [(path, path) for path in common if olds[path].many]
    told = set()
    for first, second in couples:
        old, other_old = olds[first], olds[second]
        new, other_new = news[first], news[second]
        other, field = alive[int(first[0])], alive[int(second[0])]
        if new.wants_equal(other_new) and not old.keeps_equal(other_old):
            rule, symbol = DIM_SYMBOL_TIGHTENED, other_new.size
            text = f"{field.what} has to share the size '{symbol}' with '{other.new.name}' now"
        elif old.wants_equal(other_old) and not new.keeps_equal(other_new):
            rule, symbol = DIM_SYMBOL_LOOSENED, other_old.size
            text = f"{field.what} need not share the size '{symbol}' with '{other.new.name}' any more"
        else:
            continue
        if (field.subject, rule.id) not in told:
            told.add((field.subject, rule.id))
            values = (spell(field.old.type), spell(field.new.type))
            takes = (rule is DIM_SYMBOL_LOOSENED, rule is DIM_SYMBOL_TIGHTENED)
            yield field.change(rule, text, *values, "type", takes=takes)


def _dims(fields: Sequence[model.Field]) -> dict[_Path, _Dim]:
    return {
        dim.path: dim
        for index, field in enumerate(fields)
        for dim in _dims_in(field.type, (index,), False)
    }


def _dims_in(type_: Type, path: _Path, many: bool) -> Iterator[_Dim]:
    """Yield the dimensions in a type; nullables leave no trace in the path."""
    if isinstance(type_, model.TensorType):
        for axis, size in enumerate(type_.dims or ()):
            yield _Dim((*path, axis), size, many)
    elif isinstance(type_, model.NullableType):
        yield from _dims_in(type_.item, path, many)
    else:
        many = many or isinstance(type_, (model.ListType, model.DictType))
        for index, part in enumerate(model.children(type_)):
            step: _Path = (type(type_).__name__, index)
            if isinstance(type_, model.UnionType):
                vector = isinstance(part, model.TensorType) and part.is_vector
                step = ("option", type(part).__name__, int(vector))
            yield from _dims_in(part, (*path, *step), many)


DIM_SYMBOL_TIGHTENED = ChangeRule(
    "DIM_SYMBOL_TIGHTENED",
    "two dimensions have to be equal that had not to be",
    "Symbols are not in the fingerprint. New readers refuse tensors of old writers where the "
    "two sizes differ.",
    "give the dimension a symbol of its own, and compare the sizes where they matter.",
    finder=dim_symbol_changed,
    harmless=NOTE,
)
DIM_SYMBOL_LOOSENED = ChangeRule(
    "DIM_SYMBOL_LOOSENED",
    "two dimensions no longer have to be equal",
    "Symbols are not in the fingerprint. Old readers refuse tensors of new writers where the "
    "two sizes differ.",
    "upgrade the receiver first.",
    finder=dim_symbol_changed,
    severity=WARNING,
    harmless=NOTE,
)

OF_TENSORS = (DTYPE_CHANGED, RANK_CHANGED, DIM_CHANGED, DEVICE_CHANGED)
