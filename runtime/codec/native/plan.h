/* The plan: a group's description table as structs, which encode/ and decode/ walk. */
#ifndef MSGEN_PLAN_H
#define MSGEN_PLAN_H

#include "common.h"

enum {
    MAX_HEAD = 12, /* bytes of an array header and what stands first in it */
    MAX_FLAT = 16, /* fields of a record that is written in one go */
    TAGS = 256,
};

/* By the names of the classes of the description table: see plan.c. */
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
    Record *by_tag[TAGS]; /* the messages */
    size_t class_mask;
    ClassEntry *classes; /* open addressing */
    uint32_t prefix;     /* header without its tag */
    PyObject *kept;      /* every object that the plan refers to */
} Plan;

Plan *plan_new(PyObject *records, uint32_t prefix);
void plan_free(Plan *plan);
bool record_check(Record *record);

/* Return the state of a class: another number after each change of it or its bases, 0 while Python
 * has given it none. */
static inline unsigned int class_version(PyTypeObject *cls) {
#if PY_VERSION_HEX < 0x030b0000 /* a change there leaves the number, and takes only this flag */
    if (!PyType_HasFeature(cls, Py_TPFLAGS_VALID_VERSION_TAG)) {
        return 0;
    }
#endif
    return cls->tp_version_tag;
}

/* Say whether a record's class still is as it was generated, not patched at run time. */
static inline bool record_is_intact(Record *record) {
    if (LIKELY(record->version != 0 && class_version(record->cls) == record->version)) {
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

#endif
