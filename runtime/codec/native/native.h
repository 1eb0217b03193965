/* The compiled codec: what its files share.
 *
 * A generated module hands over its description table once; plan.c compiles it to the structs
 * below, encode.c and decode.c walk them. They take what fits a field exactly and give up on the
 * rest: `false` or NULL, without a text. The engine (engine.c) then calls the Python codec, which
 * converts the message or explains what is wrong with it, so that both have the same errors.
 *
 * Every function here needs the GIL. It is let go only to copy more than COPY_WITHOUT_GIL bytes.
 */
#ifndef MSGEN_NATIVE_H
#define MSGEN_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#if PY_VERSION_HEX < 0x030b0000
#include <longintrepr.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "dlpack_abi.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors travel as they lie in memory: little-endian hosts only"
#endif

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

enum {
    MAX_DEPTH = 64,    /* times that a recursive record may stand inside itself */
    MAX_NESTING = 400, /* open containers: with more it is for Python to say what goes */
    PLAIN_DEPTH = 32,  /* levels of lists and dicts in a value of type `any` */
    MAX_RANK = 64,     /* dimensions of a tensor */
    MAX_SYMBOLS = 64,  /* dimension symbols of a record; plan.c refuses more */
    MAX_HEAD = 12,     /* bytes of an array header and what stands first in it */
    MAX_FLAT = 16,     /* fields of a record that is written in one go */
    TAGS = 256,
};

#define COPY_WITHOUT_GIL (1 << 20) /* bytes from which other threads may run while we copy */

/* Python's ints: most are small enough to be read in place. */

#if PY_VERSION_HEX >= 0x030c0000
static inline bool long_is_compact(PyObject *value) {
    return PyLong_CheckExact(value) && PyUnstable_Long_IsCompact((PyLongObject *)value);
}

static inline long long long_compact_value(PyObject *value) {
    return PyUnstable_Long_CompactValue((PyLongObject *)value);
}
#else
static inline bool long_is_compact(PyObject *value) {
    return PyLong_CheckExact(value) && (size_t)(Py_SIZE(value) + 1) < 3;
}

static inline long long long_compact_value(PyObject *value) {
    return Py_SIZE(value) * (long long)((PyLongObject *)value)->ob_digit[0];
}
#endif

/* The plan */

typedef enum {
    KIND_BOOL,
    KIND_INT,
    KIND_FLOAT,
    KIND_STR,
    KIND_BYTES,
    KIND_PLAIN,
    KIND_LIST,
    KIND_TUPLE,
    KIND_DICT,
    KIND_NULLABLE,
    KIND_UNION,
    KIND_ENUM,
    KIND_STRUCT,
    KIND_MESSAGE,
    KIND_TENSOR,
    KINDS,
} Kind;

typedef struct Node Node;
typedef struct Record Record;

typedef struct {
    PyTypeObject *cls;
    Py_ssize_t count;
    int64_t *numbers;   /* ascending */
    PyObject **members; /* of the same order */
    PyObject *unknown;  /* the member for other numbers, or NULL */
} Enum;

typedef struct {
    int dtype;         /* its number on the wire, -1 for any */
    int rank;          /* -1 for any */
    int64_t *shape;    /* sizes, -1 for any size */
    int *symbols;      /* indexes into the record's symbols, -1 for none */
    bool has_symbols;
    PyObject *encode; /* (tensor, frames) -> slot: what DLPack cannot do */
    PyObject *decode; /* (slot) -> tensor */
} TensorType;

typedef struct {
    Py_ssize_t count;
    Node *options;
    /* The option for each kind of Python value and of msgpack value, or NULL. */
    Node *of_bool, *of_int, *of_float, *of_str, *of_bytes, *of_list, *of_tuple, *of_dict;
    Node *from_bool, *from_int, *from_float, *from_str, *from_bin, *from_array, *from_map;
    Record **by_tag; /* TAGS messages, or NULL where none is an option */
    bool has_symbols; /* in a tensor that is an option itself */
} Union;

struct Node {
    Kind kind;
    bool is_single;     /* float: 32 bits */
    bool is_finite;     /* float: neither infinite nor nan */
    bool is_unsigned;   /* int */
    int64_t low;        /* int: least value */
    uint64_t high;      /* int: greatest value */
    Py_ssize_t max_len; /* str, bytes, list, dict, tensor; PY_SSIZE_T_MAX without a limit */
    Py_ssize_t count;   /* tuple: number of items */
    Node *items;        /* list, nullable: the item; tuple: the items; dict: key and value */
    Union *alternatives;
    Enum *enumeration;
    Record *record;
    TensorType *tensor;
};

typedef struct {
    Py_ssize_t offset; /* of the attribute in an instance */
    int run;           /* fields from this one on that are plain numbers, 0 where it is none */
    Node node;
    PyObject *name;
    PyObject *descriptor; /* the class's slot descriptor */
    PyObject *make_default;  /* () -> default, or NULL */
    bool is_removed;         /* written as nil, not read */
    bool is_late;            /* appended later: an older writer does not write it */
    bool nil_means_default;  /* nil is no value of its type */
} Field;

/* A struct, or a message where it has a tag. */
struct Record {
    PyTypeObject *cls;
    PyObject *init;        /* the `__init__` that the generator gave it */
    PyObject *init_code;   /* and what that does */
    unsigned int version;  /* the class's state at the last check, 0 for none */
    bool is_intact;        /* the class was as generated at that state */
    bool is_recursive;
    bool is_root;          /* a message that may stand by itself */
    bool is_flat;          /* all its fields are plain numbers, and few */
    bool is_compact;       /* an instance is its slots and nothing else */
    int tag;               /* -1 for a struct */
    int symbols;           /* number of dimension symbols */
    Py_ssize_t count;
    Field *fields;
    Py_ssize_t root_size, nested_size;
    unsigned char root_head[MAX_HEAD];   /* array header, message header */
    unsigned char nested_head[MAX_HEAD]; /* array header, tag of a message */
};

typedef struct {
    PyTypeObject *cls;
    Record *record;
} ClassEntry;

typedef struct {
    Py_ssize_t count;
    Record *records;
    Record *by_tag[TAGS]; /* root messages */
    size_t class_mask;
    ClassEntry *classes; /* open addressing */
    uint32_t prefix;     /* header without its tag */
    PyObject *kept;      /* every object that the plan refers to */
} Plan;

Plan *plan_new(PyObject *records, uint32_t prefix);
void plan_free(Plan *plan);
bool record_check(Record *record);

/* Say whether a record's class still is as it was generated, not patched at run time. */
static inline bool record_is_intact(Record *record) {
    PyTypeObject *cls = record->cls;
    if (LIKELY(record->version != 0 && cls->tp_version_tag == record->version &&
               PyType_HasFeature(cls, Py_TPFLAGS_VALID_VERSION_TAG))) {
        return record->is_intact;
    }
    return record_check(record);
}

/* Say whether an instance made without `__init__` is what `__init__` would make of it. */
static inline bool record_is_constructible(Record *record) {
    return record_is_intact(record) && PyFunction_GET_CODE(record->init) == record->init_code;
}

static inline size_t class_hash(const PyTypeObject *cls) {
    uintptr_t bits = (uintptr_t)cls >> 4;
    return (size_t)(bits ^ bits >> 9);
}

/* Return the record of exactly this class, or NULL. */
static inline Record *plan_record(const Plan *plan, const PyTypeObject *cls) {
    for (size_t at = class_hash(cls);; at++) {
        const ClassEntry *entry = &plan->classes[at & plan->class_mask];
        if (entry->cls == cls) {
            return entry->record;
        }
        if (entry->cls == NULL) {
            return NULL;
        }
    }
}

/* Instances */

bool instances_adopt(PyTypeObject *cls, Py_ssize_t slots);
PyObject *instance_new(PyTypeObject *cls);

/* Encoding */

PyObject *encode_whole(const Plan *plan, PyObject *message);
PyObject *encode_framed(const Plan *plan, PyObject *message, Py_ssize_t threshold);

/* Decoding */

typedef struct {
    Py_buffer *views; /* of the payload frames; NULL where all payloads stand in the array */
    Py_ssize_t count;
    bool *taken;
} Frames;

PyObject *decode_whole(const Plan *plan, const void *data, Py_ssize_t size, Frames *frames);

/* Hold the symbols of a tensor's type against the sizes that they have in the record so far, -1 for
 * those that have none yet. */
static inline bool match_symbols(int64_t *sizes, const TensorType *type, int rank,
                                 const int64_t *shape) {
    if (!type->has_symbols || type->rank != rank) {
        return true;
    }
    for (int axis = 0; axis < rank; axis++) {
        if (type->symbols[axis] < 0) {
            continue;
        }
        int64_t *size = &sizes[type->symbols[axis]];
        if (*size < 0) {
            *size = shape[axis];
        } else if (*size != shape[axis]) {
            return false;
        }
    }
    return true;
}

/* Tensors */

/* A tensor's memory, as far as it can be read in place. */
typedef struct {
    const void *data;
    Py_ssize_t size; /* bytes */
    int dtype;       /* its number on the wire */
    int rank;
    int64_t *shape;
    PyObject *storage; /* keeps the memory alive whatever the tensor is made to be; NULL if empty */
} TensorView;

bool tensors_configure(PyObject *tensor, PyObject *parameter, PyObject *exchange_api,
                       PyObject *count_modes, PyObject *view_of, PyObject *frame_writer);
bool tensors_have_api(void);
bool tensor_is_plain(PyObject *value);
bool tensor_read(PyObject *value, TensorView *view);
int tensor_item_size(int dtype);
bool tensor_is_bool(int dtype);
bool tensor_is_decodable(int dtype);
PyObject *tensor_make(int dtype, int rank, int64_t *shape, const void *payload, Py_ssize_t size);
PyObject *tensor_view_of(PyObject *value);
PyObject *new_frame_writer(Py_ssize_t threshold);

#endif
