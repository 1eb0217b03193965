/* A value by its type, records slot by slot, and whole messages.
 *
 * What is read strictly here and may be taken otherwise is left to the table codec.
 */
#include "../instances.h"
#include "numbers.h"

enum { SKIP_DEPTH = 64 }; /* deeper arrays of unknown slots are left to the table codec */

static PyObject *decode_record(Decoder *decoder, Record *record, Py_ssize_t count, int depth);

/* Read `[tag, slot, ...]` of one of the messages. */
static PyObject *decode_message(Decoder *decoder, Record **by_tag, Record *only, int depth) {
    Py_ssize_t count;
    Integer tag;
    if (!take_array(decoder, &count) || count < 1 || !take_integer(decoder, &tag) ||
        tag.is_large || tag.number < 0 || tag.number >= TAGS) {
        return NULL;
    }
    Record *record = by_tag != NULL ? by_tag[tag.number] : only->tag == tag.number ? only : NULL;
    return record == NULL ? NULL : decode_record(decoder, record, count - 1, depth);
}

static PyObject *decode_union(Decoder *decoder, const Node *node, int depth) {
    const Union *alternatives = node->alternatives;
    if (left(decoder) < 1) {
        return NULL;
    }
    unsigned char code = *decoder->at;
    const Node *option;
    if (begins(ARRAY, code)) {
        if (alternatives->by_tag != NULL) {
            return decode_message(decoder, alternatives->by_tag, NULL, depth);
        }
        option = alternatives->from_array;
    } else if (begins(STR, code)) {
        option = alternatives->from_str;
    } else if (begins(MAP, code)) {
        option = alternatives->from_map;
    } else if (code < 0x80 || code >= 0xe0 || (code >= 0xcc && code <= 0xd3)) {
        option = alternatives->from_int;
    } else if (begins(BIN, code)) {
        option = alternatives->from_bin;
    } else if (code == FLOAT32 || code == FLOAT64) {
        option = alternatives->from_float;
    } else if (code == TRUE_BYTE || code == FALSE_BYTE) {
        option = alternatives->from_bool;
    } else {
        option = NULL;
    }
    if (option == NULL) {
        return NULL;
    }
    PyObject *value = decode_value(decoder, option, depth, true);
    if (value != NULL && option->kind == KIND_TENSOR && alternatives->has_symbols &&
        !match_options(decoder, alternatives, value)) {
        Py_CLEAR(value);
    }
    return value;
}

/* Records */

PyObject *decode_value(Decoder *decoder, const Node *node, int depth, bool is_inline) {
    switch (node->kind) {
    case KIND_BOOL: return decode_bool(decoder);
    case KIND_INT: return decode_int(decoder, node);
    case KIND_FLOAT: return decode_float(decoder, node);
    case KIND_STR: return decode_text(decoder, node->max_len);
    case KIND_BYTES: return decode_bytes(decoder, node->max_len, is_inline);
    case KIND_PLAIN: return decode_plain(decoder, PLAIN_DEPTH);
    case KIND_LIST: return decode_list(decoder, node->items, node->max_len, depth, is_inline);
    case KIND_TUPLE: return decode_tuple(decoder, node, depth, is_inline);
    case KIND_DICT: return decode_dict(decoder, node->items, node->max_len, depth, is_inline);
    case KIND_NULLABLE:
        if (left(decoder) >= 1 && *decoder->at == NIL) {
            decoder->at++;
            return Py_NewRef(Py_None);
        }
        return decode_value(decoder, node->items, depth, is_inline);
    case KIND_UNION: return decode_union(decoder, node, depth);
    case KIND_ENUM: return decode_enum(decoder, node->enumeration);
    case KIND_STRUCT: {
        Py_ssize_t count;
        return take_array(decoder, &count) ? decode_record(decoder, node->record, count, depth)
                                           : NULL;
    }
    case KIND_MESSAGE: return decode_message(decoder, NULL, node->record, depth);
    case KIND_TENSOR: return decode_tensor(decoder, node, is_inline);
    default: Py_UNREACHABLE();
    }
}

static inline PyObject *decode_field(Decoder *decoder, const Field *field, int depth) {
    if (UNLIKELY(field->nil_means_default && left(decoder) >= 1 && *decoder->at == NIL)) {
        decoder->at++;
        return PyObject_CallNoArgs(field->make_default);
    }
    switch (field->node.kind) {
    case KIND_INT: return decode_int(decoder, &field->node);
    case KIND_BOOL: return decode_bool(decoder);
    case KIND_FLOAT: return decode_float(decoder, &field->node);
    default: return decode_value(decoder, &field->node, depth, false);
    }
}

static inline PyObject **slot_of(PyObject *message, const Field *field) {
    return (PyObject **)((char *)message + field->offset);
}

/* What stands for slots that an older writer did not write. */
static bool fill_defaults(const Record *record, PyObject *message, Py_ssize_t count) {
    for (Py_ssize_t index = count; index < record->count; index++) {
        const Field *field = &record->fields[index];
        if (field->make_default == NULL || !field->is_late) {
            return false;
        }
        if (!field->is_removed &&
            (*slot_of(message, field) = PyObject_CallNoArgs(field->make_default)) == NULL) {
            return false;
        }
    }
    return true;
}

/* Fill an instance, whose slots are empty, from the slots that were written. */
static bool decode_fields(Decoder *decoder, const Record *record, PyObject *message,
                          Py_ssize_t count, int depth) {
    Py_ssize_t known = LIKELY(count == record->count) || count < record->count ? count
                                                                               : record->count;
    for (const Field *field = record->fields, *end = field + known; field < end; field++) {
        if (UNLIKELY(field->is_removed)) {
            if (!skip(decoder, SKIP_DEPTH)) {
                return false;
            }
            continue;
        }
        PyObject *value = decode_field(decoder, field, depth);
        if (UNLIKELY(value == NULL)) {
            return false;
        }
        *slot_of(message, field) = value;
    }
    if (LIKELY(count == record->count)) {
        return true;
    }
    for (Py_ssize_t index = record->count; index < count; index++) {
        if (!skip(decoder, SKIP_DEPTH)) {
            return false;
        }
    }
    return fill_defaults(record, message, count);
}

static bool decode_with_symbols(Decoder *decoder, const Record *record, PyObject *message,
                                Py_ssize_t count, int depth) {
    int64_t sizes[MAX_SYMBOLS], *outer = decoder->sizes;
    for (int index = 0; index < record->symbols; index++) {
        sizes[index] = -1;
    }
    decoder->sizes = sizes;
    bool done = decode_fields(decoder, record, message, count, depth);
    decoder->sizes = outer;
    return done;
}

/* Read `count` slots into a new instance, made without its `__init__`. */
static PyObject *decode_record(Decoder *decoder, Record *record, Py_ssize_t count, int depth) {
    if (UNLIKELY(!record_is_constructible(record) || (record->is_recursive && depth == 0) ||
                 !enter(decoder))) {
        return NULL;
    }
    depth = record->is_recursive ? depth - 1 : MAX_DEPTH;
    PyObject *message = LIKELY(record->is_compact) ? instance_new(record->cls)
                                                    : record->cls->tp_alloc(record->cls, 0);
    if (UNLIKELY(message == NULL)) {
        return NULL;
    }
    bool done = LIKELY(record->symbols == 0)
                    ? decode_fields(decoder, record, message, count, depth)
                    : decode_with_symbols(decoder, record, message, count, depth);
    decoder->nesting--;
    if (LIKELY(record->is_compact)) {
        PyObject_GC_Track(message);
    }
    if (UNLIKELY(!done)) {
        Py_DECREF(message);
        return NULL;
    }
    return message;
}

/* Return the message of a head and its frames; NULL where it is the table codec's turn, at
 * times with an error set. */
PyObject *decode_whole(const Plan *plan, const void *data, Py_ssize_t size, Frames *frames) {
    Decoder decoder = {
        .at = data,
        .end = (const unsigned char *)data + size,
        .budget = size,
        .frames = frames,
    };
    Py_ssize_t count;
    if (!take_array(&decoder, &count) || count < 1 || left(&decoder) < 5 || *decoder.at != 0xce) {
        return NULL;
    }
    uint32_t header = load_u32(decoder.at + 1);
    decoder.at += 5;
    if ((header & ~(uint32_t)0xff) != plan->prefix || plan->by_tag[header & 0xff] == NULL) {
        return NULL;
    }
    PyObject *message =
        decode_record(&decoder, plan->by_tag[header & 0xff], count - 1, MAX_DEPTH);
    if (message != NULL && decoder.at != decoder.end) {
        Py_CLEAR(message); /* bytes are left over */
    }
    return message;
}
