/* A value by its type, records field by field, and whole messages. */
#include "encode.h"
#include "encoder.h"
#include "numbers.h"

static bool encode_record(Encoder *encoder, Record *record, PyObject *value, int depth,
                          const unsigned char *head, Py_ssize_t head_size);

static bool encode_nested(Encoder *encoder, Record *record, PyObject *value, int depth) {
    return encode_record(encoder, record, value, depth, record->nested_head,
                         record->nested_size);
}

static bool encode_union(Encoder *encoder, const Node *node, PyObject *value, int depth) {
    const Union *alternatives = node->alternatives;
    PyTypeObject *cls = Py_TYPE(value);
    const Node *option = NULL;
    Record *record = plan_record(encoder->plan, cls);
    if (record != NULL) {
        if (record->tag >= 0) {
            return alternatives->by_tag != NULL &&
                   alternatives->by_tag[record->tag] == record &&
                   encode_nested(encoder, record, value, depth);
        }
        option = alternatives->from_array;
        return option != NULL && option->kind == KIND_STRUCT && option->record == record &&
               encode_nested(encoder, record, value, depth);
    }
    if (cls == &PyUnicode_Type) {
        option = alternatives->of_str;
    } else if (cls == &PyLong_Type) {
        option = alternatives->of_int;
    } else if (cls == &PyBool_Type) {
        option = alternatives->of_bool;
    } else if (cls == &PyFloat_Type) {
        option = alternatives->of_float;
    } else if (cls == &PyBytes_Type) {
        option = alternatives->of_bytes;
    } else if (cls == &PyList_Type) {
        option = alternatives->of_list;
    } else if (cls == &PyTuple_Type) {
        option = alternatives->of_tuple;
    } else if (cls == &PyDict_Type) {
        option = alternatives->of_dict;
    } else if (alternatives->from_int != NULL && alternatives->from_int->kind == KIND_ENUM &&
               alternatives->from_int->enumeration->cls == cls) {
        option = alternatives->from_int;
    } else {
        return encode_tensor_option(encoder, alternatives, value);
    }
    return option != NULL && encode_value(encoder, option, value, depth, true);
}

bool encode_value(Encoder *encoder, const Node *node, PyObject *value, int depth,
                         bool is_inline) {
    switch (node->kind) {
    case KIND_BOOL:
    case KIND_INT:
    case KIND_FLOAT: return encode_number(encoder, node, value);
    case KIND_STR: return encode_text(encoder, value, node->max_len);
    case KIND_BYTES: return encode_bytes(encoder, value, node->max_len, is_inline);
    case KIND_PLAIN: return encode_plain(encoder, value, PLAIN_DEPTH);
    case KIND_LIST: return encode_list(encoder, node, value, depth, is_inline);
    case KIND_TUPLE: return encode_tuple(encoder, node, value, depth, is_inline);
    case KIND_DICT: return encode_dict(encoder, node, value, depth, is_inline);
    case KIND_NULLABLE:
        return value == Py_None ? put_one(encoder, NIL)
                                : encode_value(encoder, node->items, value, depth, is_inline);
    case KIND_UNION: return encode_union(encoder, node, value, depth);
    case KIND_ENUM: return encode_enum(encoder, node, value);
    case KIND_STRUCT:
    case KIND_MESSAGE:
        return Py_IS_TYPE(value, node->record->cls) &&
               encode_nested(encoder, node->record, value, depth);
    case KIND_TENSOR: return encode_tensor(encoder, node, value, is_inline);
    default: Py_UNREACHABLE();
    }
}

static inline PyObject *read_slot(PyObject *message, const Field *field) {
    return *(PyObject **)((char *)message + field->offset);
}

static inline unsigned char *put_run(unsigned char *at, const Field *field, Py_ssize_t count,
                                     PyObject *message) {
    for (const Field *end = field + count; field < end; field++) {
        PyObject *value = read_slot(message, field);
        if (UNLIKELY(value == NULL || (at = put_number(at, &field->node, value)) == NULL)) {
            return NULL; /* also where the attribute was deleted */
        }
    }
    return at;
}

/* Write numbers that stand in a row, with one look at the room for all of them. */
static inline bool encode_run(Encoder *encoder, const Field *field, PyObject *message) {
    unsigned char *at = writer_room(&encoder->writer, field->run * MAX_SCALAR);
    if (UNLIKELY(at == NULL || (at = put_run(at, field, field->run, message)) == NULL)) {
        return false;
    }
    writer_advance(&encoder->writer, at);
    return true;
}

static bool encode_fields(Encoder *encoder, const Record *record, PyObject *message, int depth) {
    const Field *field = record->fields, *end = field + record->count;
    while (field < end) {
        if (field->run > 0) {
            if (UNLIKELY(!encode_run(encoder, field, message))) {
                return false;
            }
            field += field->run;
            continue;
        }
        PyObject *value = UNLIKELY(field->is_removed) ? Py_None : read_slot(message, field);
        bool done = value != NULL && /* it was deleted */
                    (field->is_removed ? put_one(encoder, NIL)
                                       : encode_held(encoder, &field->node, value, depth, false));
        if (UNLIKELY(!done)) {
            return false;
        }
        field++;
    }
    return true;
}

/* Write an instance of exactly the record's class. */
static bool encode_record(Encoder *encoder, Record *record, PyObject *value, int depth,
                          const unsigned char *head, Py_ssize_t head_size) {
    if (UNLIKELY(!record_is_intact(record) || (record->is_recursive && depth == 0) ||
                 !enter(encoder))) {
        return false;
    }
    depth = record->is_recursive ? depth - 1 : MAX_DEPTH;
    if (!writer_put(&encoder->writer, head, head_size)) {
        return false;
    }
    if (LIKELY(record->symbols == 0)) {
        bool done = encode_fields(encoder, record, value, depth);
        encoder->nesting--;
        return done;
    }
    int64_t sizes[MAX_SYMBOLS], *outer = encoder->sizes;
    for (int index = 0; index < record->symbols; index++) {
        sizes[index] = -1;
    }
    encoder->sizes = sizes;
    bool done = encode_fields(encoder, record, value, depth);
    encoder->sizes = outer;
    encoder->nesting--;
    return done;
}

/* A few numbers need no buffer that grows. */
static PyObject *encode_flat(Record *record, PyObject *message) {
    unsigned char buffer[MAX_HEAD + MAX_FLAT * MAX_SCALAR];
    memcpy(buffer, record->root_head, MAX_HEAD);
    unsigned char *end =
        put_run(buffer + record->root_size, record->fields, record->count, message);
    return LIKELY(end != NULL) ? PyBytes_FromStringAndSize((char *)buffer, end - buffer) : NULL;
}

static PyObject *finish(Encoder *encoder) {
    PyObject *head = writer_finish(&encoder->writer);
    if (head == NULL || encoder->frames == NULL || PyList_GET_SIZE(encoder->frames) == 0) {
        return head;
    }
    int failed = PyList_Insert(encoder->frames, 0, head);
    Py_DECREF(head);
    return failed ? NULL : Py_NewRef(encoder->frames);
}

/* Return a message as bytes where no payload is large, else as a list of its head and payload
 * frames; NULL where it is the table codec's turn, at times with an error set. */
PyObject *encode_message(const Plan *plan, PyObject *message, Py_ssize_t threshold) {
    Record *record = plan_record(plan, Py_TYPE(message));
    if (UNLIKELY(record == NULL || record->tag < 0)) {
        return NULL;
    }
    if (record->is_flat && !record->is_recursive && record_is_intact(record)) {
        return encode_flat(record, message);
    }
    Encoder encoder = {.plan = plan, .threshold = threshold};
    if (!writer_open(&encoder.writer)) {
        return NULL;
    }
    PyObject *result = NULL;
    if (LIKELY(encode_record(&encoder, record, message, MAX_DEPTH, record->root_head,
                             record->root_size))) {
        result = finish(&encoder);
    }
    writer_close(&encoder.writer);
    Py_XDECREF(encoder.frames);
    Py_XDECREF(encoder.frame_writer);
    return result;
}
