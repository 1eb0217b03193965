"""Rules about the types of fields: numbers, nullables, unions, tensors, limits."""

from __future__ import annotations

from msgen.codegen.evolve.changes.change import ERROR, NOTE, WARNING

from .rule import Rule

_ADD_ANOTHER = (
    "keep the field, add another of the new type at the end with `since`, and remove the old one "
    "when nobody reads it."
)
_COUNTS = (
    "Types of fields of version 1 count in the fingerprint, so builds refuse each other. For later "
    "fields nothing shows the change: "
)

TYPE_RULES = (
    Rule(
        "FIELD_RETYPED",
        "a field is of another kind of type",
        ERROR,
        WARNING,
        f"{_COUNTS}peers refuse the message, or read something else in it.",
        _ADD_ANOTHER,
        "fields:\n  stop: {type: str, default: ''}",
        "version: 2\nfields:\n  stop: {type: str, default: '', removed: true}\n"
        "  stops: {type: 'list[str]', default: [], since: 2}",
        misread=True,
    ),
    Rule(
        "INT_CHANGED",
        "an integer has another width or sign",
        ERROR,
        WARNING,
        f"{_COUNTS}the narrower side refuses numbers out of its range.",
        _ADD_ANOTHER,
        "fields:\n  count: {type: u8, default: 0}",
        "version: 2\nfields:\n  count: {type: u8, default: 0, removed: true}\n"
        "  total: {type: u32, default: 0, since: 2}",
    ),
    Rule(
        "FLOAT_CHANGED",
        "a float has another width",
        ERROR,
        WARNING,
        f"{_COUNTS}the narrower side refuses numbers out of its range.",
        _ADD_ANOTHER,
    ),
    Rule(
        "NULLABLE_CHANGED",
        "a type became nullable, or is no longer",
        ERROR,
        WARNING,
        f"{_COUNTS}the side that knows no None refuses it, or takes it for the field's default.",
        "make a new field nullable; keep an old one as it is, with a value that means nothing.",
        misread=True,
    ),
    Rule(
        "UNION_CHANGED",
        "a union has more or fewer alternatives",
        ERROR,
        WARNING,
        f"{_COUNTS}the side without an alternative refuses it, and a payload that may travel in a "
        "frame is taken for an integer, since in a union it may not.",
        "upgrade the side that reads the wider union first, or add a field at the end.",
        misread=True,
    ),
    Rule(
        "UNION_EXTENDED",
        "a union takes one more message, which was added later",
        WARNING,
        NOTE,
        "Messages with `since` are not in the fingerprint, and may join a union without changing "
        "it. Readers that do not know the message refuse all of the one that holds it.",
        "send the new message there when all readers know it: upgrade the receiver first.",
        "messages:\n  Plan: {tag: 1, fields: {steps: 'list[Run]'}}\n  Run: {tag: 2}",
        "version: 2\nmessages:\n  Plan: {tag: 1, fields: {steps: 'list[Run | Wait]'}}\n"
        "  Run: {tag: 2}\n  Wait: {tag: 3, since: 2}",
    ),
    Rule(
        "DTYPE_CHANGED",
        "a tensor has another dtype",
        ERROR,
        WARNING,
        f"{_COUNTS}the bytes of one dtype are read as those of another where the length fits.",
        _ADD_ANOTHER,
        misread=True,
    ),
    Rule(
        "RANK_CHANGED",
        "a tensor has more or fewer dimensions",
        ERROR,
        WARNING,
        f"{_COUNTS}the dimensions are refused, or not found where they are looked for.",
        _ADD_ANOTHER,
        misread=True,
    ),
    Rule(
        "DIM_CHANGED",
        "a dimension of a tensor has another fixed size, or became one",
        ERROR,
        WARNING,
        f"{_COUNTS}the side with the fixed size refuses tensors of other sizes.",
        "use a symbol for sizes that may change.",
    ),
    Rule(
        "DIM_SYMBOL_TIGHTENED",
        "two dimensions have to be equal that had not to be",
        ERROR,
        NOTE,
        "Symbols are not in the fingerprint. New readers refuse tensors of old writers where the "
        "two sizes differ.",
        "give the dimension a symbol of its own, and compare the sizes where they matter.",
    ),
    Rule(
        "DIM_SYMBOL_LOOSENED",
        "two dimensions no longer have to be equal",
        WARNING,
        NOTE,
        "Symbols are not in the fingerprint. Old readers refuse tensors of new writers where the "
        "two sizes differ.",
        "upgrade the receiver first.",
    ),
    Rule(
        "LIMIT_TIGHTENED",
        "`max_len` or `finite` allows less than it did",
        ERROR,
        NOTE,
        "Limits are not in the fingerprint. New readers refuse messages of old writers that were "
        "within the old limit.",
        "upgrade the senders first, which then refuse such values themselves.",
    ),
    Rule(
        "LIMIT_LOOSENED",
        "`max_len` or `finite` allows more than it did",
        WARNING,
        NOTE,
        "Limits are not in the fingerprint. Old readers refuse messages of new writers that are "
        "beyond the old limit.",
        "upgrade the receiver first.",
    ),
    Rule(
        "DEVICE_CHANGED",
        "`device` of a tensor field changed",
        NOTE,
        NOTE,
        "The device is no matter of the wire; it tells the receiving worker where to put the "
        "tensor.",
        "nothing to do.",
    ),
    Rule(
        "STRUCT_ADDED",
        "a struct is new",
        NOTE,
        NOTE,
        "By itself it is on no wire.",
        "nothing to do.",
    ),
    Rule(
        "STRUCT_REMOVED",
        "a struct is gone",
        WARNING,
        WARNING,
        "Code that uses the class fails. Fields that held it are told by rules of their own.",
        "remove its uses in code with it.",
    ),
    Rule(
        "STRUCT_RENAMED",
        "a struct has another name",
        WARNING,
        WARNING,
        "Structs count by content, so no peer sees the name. Code that uses the class has to use "
        "its new name.",
        "change the code with it.",
    ),
    Rule(
        "TYPE_MOVED",
        "a struct or enum is declared in another group",
        NOTE,
        NOTE,
        "Structs and enums count by content, so no peer sees the move. Code that imports the class "
        "from its old module has to import it from the new one.",
        "change the imports with it.",
    ),
    Rule(
        "TYPE_REPLACED",
        "a field holds another struct or enum",
        WARNING,
        WARNING,
        "Structs and enums count by content: where that is the same, no peer sees a difference, "
        "and where it is not, rules about the content tell. Code has to make the other class.",
        "change the code with it.",
    ),
)
