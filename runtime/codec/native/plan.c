/* From the description table, as plain tuples, to the structs that encode/ and decode/ walk.
 *
 * runtime/codec/plan.py makes the tuples and says how they look. A table that the engine cannot
 * serve raises ValueError; the generated functions then serve the group.
 */
#include "plan.h"

#include "instances.h"
#include "msgpack.h"

#include <structmember.h>

typedef struct {
    Plan *plan;
    PyObject *kept;
} Builder;

static bool build_node(Builder *builder, PyObject *from, Node *node);

/* Keep an object alive as long as the plan. */
static bool keep(Builder *builder, PyObject *object) {
    return PyList_Append(builder->kept, object) == 0;
}

static void *allocate(Py_ssize_t count, size_t size) {
    void *memory = PyMem_Calloc((size_t)(count > 0 ? count : 1), size);
    if (memory == NULL) {
        PyErr_NoMemory();
    }
    return memory;
}

static bool build_items(Builder *builder, PyObject *from, Node *node) {
    node->count = PyTuple_Size(from);
    if (node->count < 0) {
        return false;
    }
    node->items = allocate(node->count, sizeof(Node));
    if (node->items == NULL) {
        return false;
    }
    for (Py_ssize_t index = 0; index < node->count; index++) {
        if (!build_node(builder, PyTuple_GET_ITEM(from, index), &node->items[index])) {
            return false;
        }
    }
    return true;
}

static bool has_items(const Node *node) {
    if (node->count == 0) {
        PyErr_SetString(PyExc_ValueError, "a tuple without items");
    }
    return node->count > 0;
}

static bool set_limit(Node *node, PyObject *limit) {
    node->max_len = limit == Py_None ? PY_SSIZE_T_MAX : PyLong_AsSsize_t(limit);
    return !PyErr_Occurred();
}

static bool build_enum(Builder *builder, Node *node, PyObject *cls, PyObject *numbers,
                       PyObject *members, PyObject *unknown) {
    Enum *made = node->enumeration = allocate(1, sizeof(Enum));
    if (made == NULL) {
        return false;
    }
    made->cls = (PyTypeObject *)cls;
    made->count = PyTuple_GET_SIZE(numbers);
    made->unknown = unknown == Py_None ? NULL : unknown;
    made->numbers = allocate(made->count, sizeof(int64_t));
    made->members = allocate(made->count, sizeof(PyObject *));
    if (made->numbers == NULL || made->members == NULL) {
        return false;
    }
    for (Py_ssize_t index = 0; index < made->count; index++) {
        made->numbers[index] = PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, index));
        made->members[index] = PyTuple_GET_ITEM(members, index);
    }
    return !PyErr_Occurred() && keep(builder, cls) && keep(builder, members) &&
           keep(builder, unknown);
}

static bool build_tensor(Builder *builder, Node *node, int dtype, PyObject *shape,
                         PyObject *symbols, PyObject *encode, PyObject *decode) {
    TensorType *made = node->tensor = allocate(1, sizeof(TensorType));
    if (made == NULL) {
        return false;
    }
    made->dtype = dtype;
    made->rank = shape == Py_None ? -1 : (int)PyTuple_GET_SIZE(shape);
    made->encode = encode;
    made->decode = decode;
    if (made->rank > MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "a tensor of rank %d, at most %d are served", made->rank,
                     MAX_RANK);
        return false;
    }
    made->shape = allocate(made->rank, sizeof(int64_t));
    made->symbols = allocate(made->rank, sizeof(int));
    if (made->shape == NULL || made->symbols == NULL) {
        return false;
    }
    for (int axis = 0; axis < made->rank; axis++) {
        made->shape[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, axis));
        made->symbols[axis] = (int)PyLong_AsLong(PyTuple_GET_ITEM(symbols, axis));
        made->has_symbols |= made->symbols[axis] >= 0;
    }
    return !PyErr_Occurred() && keep(builder, encode) && keep(builder, decode);
}

static void index_option(Union *made, Node *option) {
#define FIRST(slot)          \
    if (made->slot == NULL) { \
        made->slot = option;  \
    }
    switch (option->kind) {
    case KIND_BOOL: FIRST(of_bool) FIRST(from_bool) break;
    case KIND_INT: FIRST(of_int) FIRST(from_int) break;
    case KIND_ENUM: FIRST(from_int) break;
    case KIND_FLOAT: FIRST(of_float) FIRST(from_float) break;
    case KIND_STR: FIRST(of_str) FIRST(from_str) break;
    case KIND_BYTES: FIRST(of_bytes) FIRST(from_bin) break;
    case KIND_LIST: FIRST(of_list) FIRST(from_array) break;
    case KIND_TUPLE: FIRST(of_tuple) FIRST(from_array) break;
    case KIND_STRUCT: FIRST(from_array) break;
    case KIND_DICT: FIRST(of_dict) FIRST(from_map) break;
    case KIND_TENSOR:
        if (option->tensor->dtype >= 0 && option->tensor->rank == 1) {
            FIRST(from_bin)
        } else {
            FIRST(from_array)
        }
        break;
    default: break;
    }
#undef FIRST
}

static bool build_union(Builder *builder, Node *node, PyObject *from) {
    Union *made = node->alternatives = allocate(1, sizeof(Union));
    if (made == NULL || !build_items(builder, from, node)) {
        return false;
    }
    made->count = node->count;
    made->options = node->items;
    for (Py_ssize_t index = 0; index < made->count; index++) {
        Node *option = &made->options[index];
        index_option(made, option);
        made->has_symbols |= option->kind == KIND_TENSOR && option->tensor->has_symbols;
        if (option->kind != KIND_MESSAGE) {
            continue;
        }
        if (option->record->tag < 0) {
            PyErr_SetString(PyExc_ValueError, "a struct where a message should be");
            return false;
        }
        if (made->by_tag == NULL) {
            made->by_tag = allocate(TAGS, sizeof(Record *));
            if (made->by_tag == NULL) {
                return false;
            }
        }
        made->by_tag[option->record->tag] = option->record;
    }
    return true;
}

static bool set_record(Builder *builder, Node *node, Py_ssize_t index) {
    if (index < 0 || index >= builder->plan->count) {
        PyErr_SetString(PyExc_ValueError, "a record that the table does not have");
        return false;
    }
    node->record = &builder->plan->records[index];
    return true;
}

static bool build_int(Node *node, PyObject *low, PyObject *high) {
    node->low = PyLong_AsLongLong(low);
    node->high = PyLong_AsUnsignedLongLong(high);
    return !PyErr_Occurred();
}

/* The classes of runtime/codec/table.py. */
static const char *const kind_names[KINDS] = {
    [KIND_BOOL] = "Bool",         [KIND_INT] = "Int",       [KIND_FLOAT] = "Float",
    [KIND_STR] = "Str",           [KIND_BYTES] = "Bytes",   [KIND_PLAIN] = "Plain",
    [KIND_LIST] = "List",         [KIND_TUPLE] = "Tuple",   [KIND_DICT] = "Dict",
    [KIND_NULLABLE] = "Nullable", [KIND_UNION] = "Union",   [KIND_ENUM] = "Enum",
    [KIND_STRUCT] = "Struct",     [KIND_MESSAGE] = "Message", [KIND_TENSOR] = "Tensor",
};

static bool find_kind(PyObject *name, Kind *kind) {
    for (int number = 0; PyUnicode_Check(name) && number < KINDS; number++) {
        if (PyUnicode_CompareWithASCIIString(name, kind_names[number]) == 0) {
            *kind = (Kind)number;
            return true;
        }
    }
    PyErr_Format(PyExc_ValueError, "kind %R is unknown", name);
    return false;
}

/* Build a node of `(kind, ...)`. */
static bool build_node(Builder *builder, PyObject *from, Node *node) {
    PyObject *kind, *one, *two, *three, *four, *five;
    int number, flag;
    Py_ssize_t index;
    if (!PyTuple_Check(from) || PyTuple_GET_SIZE(from) < 1) {
        PyErr_SetString(PyExc_ValueError, "expected a tuple (kind, ...)");
        return false;
    }
    if (!find_kind(PyTuple_GET_ITEM(from, 0), &node->kind)) {
        return false;
    }
    switch (node->kind) {
    case KIND_BOOL:
    case KIND_PLAIN: return true;
    case KIND_INT:
        return PyArg_ParseTuple(from, "OOO", &kind, &one, &two) && build_int(node, one, two);
    case KIND_FLOAT:
        if (!PyArg_ParseTuple(from, "Oip", &kind, &number, &flag)) {
            return false;
        }
        node->is_single = number == 32;
        node->is_finite = flag;
        return true;
    case KIND_STR:
    case KIND_BYTES: return PyArg_ParseTuple(from, "OO", &kind, &one) && set_limit(node, one);
    case KIND_LIST:
    case KIND_DICT:
        return PyArg_ParseTuple(from, "OO!O", &kind, &PyTuple_Type, &one, &two) &&
               set_limit(node, two) && build_items(builder, one, node);
    case KIND_TUPLE:
    case KIND_NULLABLE:
        return PyArg_ParseTuple(from, "OO!", &kind, &PyTuple_Type, &one) &&
               build_items(builder, one, node) && has_items(node);
    case KIND_UNION:
        return PyArg_ParseTuple(from, "OO!", &kind, &PyTuple_Type, &one) &&
               build_union(builder, node, one);
    case KIND_ENUM:
        return PyArg_ParseTuple(from, "OO!O!O!O", &kind, &PyType_Type, &one, &PyTuple_Type, &two,
                                &PyTuple_Type, &three, &four) &&
               build_enum(builder, node, one, two, three, four);
    case KIND_STRUCT:
    case KIND_MESSAGE:
        return PyArg_ParseTuple(from, "On", &kind, &index) && set_record(builder, node, index);
    case KIND_TENSOR:
        return PyArg_ParseTuple(from, "OiOOOOO", &kind, &number, &one, &two, &three, &four,
                                &five) &&
               set_limit(node, three) && build_tensor(builder, node, number, one, two, four, five);
    default: Py_UNREACHABLE();
    }
}

/* Find where instances keep an attribute: the class must have a slot for it. */
static bool find_slot(Builder *builder, Record *record, Field *field) {
    PyObject *found = _PyType_Lookup(record->cls, field->name);
    if (found == NULL || !Py_IS_TYPE(found, &PyMemberDescr_Type)) {
        PyErr_Format(PyExc_ValueError, "%s has no slot for %R", record->cls->tp_name, field->name);
        return false;
    }
    PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
    if (member->type != T_OBJECT_EX || (member->flags & READONLY)) {
        PyErr_Format(PyExc_ValueError, "%s keeps %R in another way", record->cls->tp_name,
                     field->name);
        return false;
    }
    field->descriptor = found;
    field->offset = member->offset;
    return keep(builder, found);
}

static bool build_field(Builder *builder, Record *record, PyObject *from, Field *field) {
    PyObject *node, *make_default;
    int removed, late, nil_means_default;
    if (!PyArg_ParseTuple(from, "O!OOppp", &PyUnicode_Type, &field->name, &node, &make_default,
                          &removed, &late, &nil_means_default)) {
        return false;
    }
    field->make_default = make_default == Py_None ? NULL : make_default;
    field->is_removed = removed;
    field->is_late = late;
    field->nil_means_default = nil_means_default;
    if (!keep(builder, field->name) || !keep(builder, make_default)) {
        return false;
    }
    if (removed) {
        return true;
    }
    return build_node(builder, node, &field->node) && find_slot(builder, record, field);
}

static void build_heads(Record *record, uint32_t prefix) {
    Py_ssize_t slots = record->count + 1;
    unsigned char *end = put_array_head(record->root_head, (size_t)slots);
    *end++ = 0xce;
    store_u32(end, prefix | (uint32_t)(record->tag < 0 ? 0 : record->tag));
    record->root_size = end + 4 - record->root_head;

    if (record->tag < 0) {
        end = put_array_head(record->nested_head, (size_t)record->count);
    } else {
        end = put_array_head(record->nested_head, (size_t)slots);
        end = put_uint(end, (uint64_t)record->tag);
    }
    record->nested_size = end - record->nested_head;
}

/* The class by itself: fields may refer to any record, so all are there before the first field. */
static bool build_record(Builder *builder, Record *record, PyObject *from) {
    PyObject *cls, *fields;
    int recursive;
    if (!PyArg_ParseTuple(from, "O!ipiO!", &PyType_Type, &cls, &record->tag, &recursive,
                          &record->symbols, &PyTuple_Type, &fields)) {
        return false;
    }
    record->cls = (PyTypeObject *)cls;
    record->is_recursive = recursive;
    record->count = PyTuple_GET_SIZE(fields);
    if (record->tag >= TAGS || record->symbols > MAX_SYMBOLS) {
        PyErr_Format(PyExc_ValueError, "%s has tag %d and %d symbols", record->cls->tp_name,
                     record->tag, record->symbols);
        return false;
    }
    record->init = PyObject_GetAttrString(cls, "__init__");
    if (record->init == NULL) {
        return false;
    }
    bool kept = keep(builder, record->init) && keep(builder, cls);
    Py_DECREF(record->init); /* the plan's now */
    if (!PyFunction_Check(record->init)) {
        PyErr_Format(PyExc_ValueError, "%s has no __init__ of its own", record->cls->tp_name);
        return false;
    }
    record->init_code = PyFunction_GET_CODE(record->init);
    kept = kept && keep(builder, record->init_code);
    record->fields = allocate(record->count, sizeof(Field));
    return kept && record->fields != NULL;
}

/* Bools, ints and floats in a row are written together. */
static void find_runs(Record *record) {
    int run = 0;
    for (Py_ssize_t index = record->count; index-- > 0;) {
        Field *field = &record->fields[index];
        Kind kind = field->node.kind;
        bool is_number = kind == KIND_BOOL || kind == KIND_INT || kind == KIND_FLOAT;
        run = is_number && !field->is_removed ? run + 1 : 0;
        field->run = run;
    }
}

static Py_ssize_t live_fields(const Record *record) {
    Py_ssize_t count = 0;
    for (Py_ssize_t index = 0; index < record->count; index++) {
        count += !record->fields[index].is_removed;
    }
    return count;
}

static bool build_fields(Builder *builder, Record *record, PyObject *from) {
    PyObject *fields = PyTuple_GET_ITEM(from, 4);
    for (Py_ssize_t index = 0; index < record->count; index++) {
        if (!build_field(builder, record, PyTuple_GET_ITEM(fields, index),
                         &record->fields[index])) {
            return false;
        }
    }
    build_heads(record, builder->plan->prefix);
    find_runs(record);
    record->is_flat = record->count <= MAX_FLAT &&
                      (record->count == 0 || record->fields[0].run == record->count);
    record->is_compact = instances_adopt(record->cls, live_fields(record));
    if (!record_check(record)) {
        PyErr_Format(PyExc_ValueError, "%s is not as it was generated", record->cls->tp_name);
        return false;
    }
    return true;
}

static bool index_classes(Plan *plan) {
    size_t size = 4;
    while (size < 4 * (size_t)plan->count) {
        size *= 2;
    }
    plan->class_mask = size - 1;
    plan->classes = allocate((Py_ssize_t)size, sizeof(ClassEntry));
    if (plan->classes == NULL) {
        return false;
    }
    for (Py_ssize_t index = 0; index < plan->count; index++) {
        Record *record = &plan->records[index];
        size_t at = class_hash(record->cls);
        while (plan->classes[at & plan->class_mask].cls != NULL) {
            at++;
        }
        plan->classes[at & plan->class_mask] = (ClassEntry){record->cls, record};
        if (record->tag >= 0) {
            plan->by_tag[record->tag] = record;
        }
    }
    return true;
}

/* Compile `((cls, tag, recursive, symbols, fields), ...)`. */
Plan *plan_new(PyObject *records, uint32_t prefix) {
    Plan *plan = allocate(1, sizeof(Plan));
    if (plan == NULL) {
        return NULL;
    }
    plan->prefix = prefix;
    plan->count = PyTuple_GET_SIZE(records);
    plan->records = allocate(plan->count, sizeof(Record));
    plan->kept = PyList_New(0);
    if (plan->records == NULL || plan->kept == NULL) {
        goto failed;
    }
    Builder builder = {plan, plan->kept};
    for (Py_ssize_t index = 0; index < plan->count; index++) {
        PyObject *from = PyTuple_GET_ITEM(records, index);
        if (!build_record(&builder, &plan->records[index], from)) {
            goto failed;
        }
    }
    for (Py_ssize_t index = 0; index < plan->count; index++) {
        PyObject *from = PyTuple_GET_ITEM(records, index);
        if (!build_fields(&builder, &plan->records[index], from)) {
            goto failed;
        }
    }
    /* A tuple: the garbage collector empties a list that it frees with us, while we still run. */
    Py_SETREF(plan->kept, PyList_AsTuple(plan->kept));
    if (plan->kept == NULL || !index_classes(plan)) {
        goto failed;
    }
    return plan;

failed:
    plan_free(plan);
    return NULL;
}

static void free_node(Node *node) {
    if (node->items != NULL) {
        for (Py_ssize_t index = 0; index < node->count; index++) {
            free_node(&node->items[index]);
        }
        PyMem_Free(node->items);
    }
    if (node->alternatives != NULL) {
        PyMem_Free(node->alternatives->by_tag);
        PyMem_Free(node->alternatives);
    }
    if (node->enumeration != NULL) {
        PyMem_Free(node->enumeration->numbers);
        PyMem_Free(node->enumeration->members);
        PyMem_Free(node->enumeration);
    }
    if (node->tensor != NULL) {
        PyMem_Free(node->tensor->shape);
        PyMem_Free(node->tensor->symbols);
        PyMem_Free(node->tensor);
    }
}

void plan_free(Plan *plan) {
    for (Py_ssize_t index = 0; plan->records != NULL && index < plan->count; index++) {
        Record *record = &plan->records[index];
        for (Py_ssize_t field = 0; record->fields != NULL && field < record->count; field++) {
            free_node(&record->fields[field].node);
        }
        PyMem_Free(record->fields);
    }
    PyMem_Free(plan->records);
    PyMem_Free(plan->classes);
    Py_XDECREF(plan->kept);
    PyMem_Free(plan);
}

/* Look at a class again after anything in it changed.
 *
 * Attributes are read and written in place, and instances made without `__init__`, only while
 * that gives what Python's own way would.
 */
bool record_check(Record *record) {
    static PyObject *init_name;
    if (init_name == NULL) {
        init_name = PyUnicode_InternFromString("__init__");
        if (init_name == NULL) {
            PyErr_Clear();
            return false;
        }
    }
    PyTypeObject *cls = record->cls;
    bool intact = cls->tp_getattro == PyObject_GenericGetAttr &&
                  cls->tp_setattro == PyObject_GenericSetAttr &&
                  cls->tp_new == PyBaseObject_Type.tp_new &&
                  cls->tp_alloc == PyType_GenericAlloc && cls->tp_finalize == NULL &&
                  _PyType_Lookup(cls, init_name) == record->init;
    for (Py_ssize_t index = 0; intact && index < record->count; index++) {
        const Field *field = &record->fields[index];
        intact = field->is_removed || _PyType_Lookup(cls, field->name) == field->descriptor;
    }
    record->is_intact = intact;
    record->version = class_version(cls);
    return intact;
}
