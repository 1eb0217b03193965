/* From messages to bytes. */
#include "writer.h"

#include <math.h>

#define F32_MAX 0x1.fffffep127

typedef struct {
    const Plan *plan;
    Writer writer;
    bool makes_frames;      /* or else all payloads stay in the array */
    Py_ssize_t threshold;   /* bytes from which a payload gets a frame of its own */
    PyObject *frame_writer; /* runtime/frames.py's, NULL before it is needed */
    PyObject *frames;       /* its list of buffers */
    int nesting;            /* containers and records that are open */
    int64_t *sizes;         /* of the symbols of the record that is written, -1 before the first */
} Encoder;

static bool encode_value(Encoder *encoder, const Node *node, PyObject *value, int depth,
                         bool is_inline);

/* Open a container: where they are many, Python's own limits say how it ends. */
static inline bool enter(Encoder *encoder) {
    if (UNLIKELY(encoder->nesting == MAX_NESTING)) {
        return false;
    }
    encoder->nesting++;
    return true;
}

static inline bool put_one(Encoder *encoder, unsigned char byte) {
    unsigned char *at = writer_room(&encoder->writer, 1);
    if (at == NULL) {
        return false;
    }
    *at = byte;
    encoder->writer.size++;
    return true;
}

/* Numbers */

static bool put_long(Encoder *encoder, PyObject *value) {
    unsigned char *at = writer_room(&encoder->writer, MAX_SCALAR);
    if (at == NULL) {
        return false;
    }
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (LIKELY(overflow == 0)) {
        writer_advance(&encoder->writer, put_int(at, number));
        return true;
    }
    if (overflow < 0) {
        return false;
    }
    unsigned long long large = PyLong_AsUnsignedLongLong(value);
    if (large == (unsigned long long)-1 && PyErr_Occurred()) {
        return false;
    }
    writer_advance(&encoder->writer, put_uint(at, large));
    return true;
}

/* The three below write to room that is there, and return its new end; NULL for no fit. */

static inline unsigned char *put_integer(unsigned char *at, const Node *node, PyObject *value) {
    long long number;
    if (LIKELY(long_is_compact(value))) {
        number = long_compact_value(value);
    } else {
        int overflow;
        if (!PyLong_CheckExact(value)) {
            return NULL;
        }
        number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (UNLIKELY(overflow != 0)) {
            unsigned long long large;
            if (overflow < 0 || node->high != UINT64_MAX) {
                return NULL;
            }
            large = PyLong_AsUnsignedLongLong(value);
            return large == (unsigned long long)-1 && PyErr_Occurred() ? NULL
                                                                       : put_uint(at, large);
        }
    }
    if (UNLIKELY(number < node->low || (number > 0 && (uint64_t)number > node->high))) {
        return NULL;
    }
    return put_int(at, number);
}

static inline unsigned char *put_float(unsigned char *at, const Node *node, PyObject *value) {
    double number;
    if (LIKELY(PyFloat_CheckExact(value))) {
        number = PyFloat_AS_DOUBLE(value);
    } else if (PyLong_CheckExact(value)) {
        number = PyLong_AsDouble(value);
        if (number == -1.0 && PyErr_Occurred()) {
            return NULL;
        }
    } else {
        return NULL;
    }
    if (node->is_finite && !isfinite(number)) {
        return NULL;
    }
    if (LIKELY(!node->is_single)) {
        return put_double(at, number);
    }
    return fabs(number) > F32_MAX && !isinf(number) ? NULL : put_single(at, number);
}

static inline unsigned char *put_bool(unsigned char *at, PyObject *value) {
    if (UNLIKELY(!PyBool_Check(value))) {
        return NULL;
    }
    *at = value == Py_True ? TRUE_BYTE : FALSE_BYTE;
    return at + 1;
}

static inline unsigned char *put_number(unsigned char *at, const Node *node, PyObject *value) {
    switch (node->kind) {
    case KIND_INT: return put_integer(at, node, value);
    case KIND_FLOAT: return put_float(at, node, value);
    default: return put_bool(at, value);
    }
}

static bool encode_number(Encoder *encoder, const Node *node, PyObject *value) {
    unsigned char *at = writer_room(&encoder->writer, MAX_SCALAR);
    if (at == NULL || (at = put_number(at, node, value)) == NULL) {
        return false;
    }
    writer_advance(&encoder->writer, at);
    return true;
}

static bool encode_enum(Encoder *encoder, const Node *node, PyObject *value) {
    return Py_IS_TYPE(value, node->enumeration->cls) && put_long(encoder, value);
}

/* Text and bytes */

/* Return the length in UTF-8, or -1 for a lone surrogate. */
static Py_ssize_t utf8_length(PyObject *text) {
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    const void *data = PyUnicode_DATA(text);
    int kind = PyUnicode_KIND(text);
    Py_ssize_t size = 0;
    for (Py_ssize_t index = 0; index < length; index++) {
        Py_UCS4 point = PyUnicode_READ(kind, data, index);
        if (point >= 0xd800 && point < 0xe000) {
            return -1;
        }
        size += 1 + (point >= 0x80) + (point >= 0x800) + (point >= 0x10000);
    }
    return size;
}

static unsigned char *put_utf8(unsigned char *at, PyObject *text) {
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    const void *data = PyUnicode_DATA(text);
    int kind = PyUnicode_KIND(text);
    for (Py_ssize_t index = 0; index < length; index++) {
        Py_UCS4 point = PyUnicode_READ(kind, data, index);
        if (point < 0x80) {
            *at++ = (unsigned char)point;
            continue;
        }
        if (point < 0x800) {
            *at++ = (unsigned char)(0xc0 | point >> 6);
        } else {
            if (point < 0x10000) {
                *at++ = (unsigned char)(0xe0 | point >> 12);
            } else {
                *at++ = (unsigned char)(0xf0 | point >> 18);
                *at++ = (unsigned char)(0x80 | (point >> 12 & 0x3f));
            }
            *at++ = (unsigned char)(0x80 | (point >> 6 & 0x3f));
        }
        *at++ = (unsigned char)(0x80 | (point & 0x3f));
    }
    return at;
}

static bool encode_text(Encoder *encoder, PyObject *value, Py_ssize_t max_len) {
    if (UNLIKELY(!PyUnicode_CheckExact(value) || PyUnicode_READY(value) < 0 ||
                 PyUnicode_GET_LENGTH(value) > max_len)) {
        return false;
    }
    bool is_ascii = PyUnicode_IS_ASCII(value);
    Py_ssize_t size = is_ascii ? PyUnicode_GET_LENGTH(value) : utf8_length(value);
    if (size < 0 || (uint64_t)size > UINT32_MAX) {
        return false;
    }
    unsigned char *at = writer_room(&encoder->writer, MAX_SCALAR + (is_ascii ? 0 : size));
    if (at == NULL) {
        return false;
    }
    at = put_str_head(at, (size_t)size);
    if (!is_ascii) {
        writer_advance(&encoder->writer, put_utf8(at, value));
        return true;
    }
    writer_advance(&encoder->writer, at);
    return writer_payload(&encoder->writer, PyUnicode_DATA(value), size, value);
}

/* Write the index of a payload's frame, which was just appended to the frames. */
static bool put_frame_index(Encoder *encoder) {
    unsigned char *at = writer_room(&encoder->writer, MAX_SCALAR);
    if (at == NULL) {
        return false;
    }
    uint64_t index = (uint64_t)PyList_GET_SIZE(encoder->frames);
    writer_advance(&encoder->writer, put_uint(at, index));
    return true;
}

static bool put_bin(Encoder *encoder, const void *data, Py_ssize_t size, PyObject *owner) {
    unsigned char *at = writer_room(&encoder->writer, MAX_SCALAR);
    if (at == NULL || (uint64_t)size > UINT32_MAX) {
        return false;
    }
    writer_advance(&encoder->writer, put_bin_head(at, (size_t)size));
    return writer_payload(&encoder->writer, data, size, owner);
}

static bool goes_into_frame(const Encoder *encoder, Py_ssize_t size, bool is_inline) {
    return encoder->makes_frames && !is_inline && size >= encoder->threshold;
}

static bool open_frames(Encoder *encoder) {
    if (encoder->frames != NULL) {
        return true;
    }
    encoder->frame_writer = new_frame_writer(encoder->threshold);
    if (encoder->frame_writer != NULL) {
        encoder->frames = PyObject_GetAttrString(encoder->frame_writer, "buffers");
    }
    return encoder->frames != NULL && PyList_CheckExact(encoder->frames);
}

static bool encode_bytes(Encoder *encoder, PyObject *value, Py_ssize_t max_len, bool is_inline) {
    if (!PyBytes_CheckExact(value) || PyBytes_GET_SIZE(value) > max_len) {
        return false;
    }
    Py_ssize_t size = PyBytes_GET_SIZE(value);
    if (goes_into_frame(encoder, size, is_inline)) {
        return open_frames(encoder) && PyList_Append(encoder->frames, value) == 0 &&
               put_frame_index(encoder);
    }
    return put_bin(encoder, PyBytes_AS_STRING(value), size, value);
}

/* Containers: what they hold is theirs, so each item is held on to while it is written, and a
 * container that changes its length meanwhile is given up. */

static bool put_array(Encoder *encoder, Py_ssize_t count) {
    unsigned char *at = writer_room(&encoder->writer, MAX_SCALAR);
    if (at == NULL || (uint64_t)count > UINT32_MAX) {
        return false;
    }
    writer_advance(&encoder->writer, put_array_head(at, (size_t)count));
    return true;
}

static bool put_map(Encoder *encoder, Py_ssize_t count) {
    unsigned char *at = writer_room(&encoder->writer, MAX_SCALAR);
    if (at == NULL || (uint64_t)count > UINT32_MAX) {
        return false;
    }
    writer_advance(&encoder->writer, put_map_head(at, (size_t)count));
    return true;
}

static bool encode_held(Encoder *encoder, const Node *node, PyObject *value, int depth,
                        bool is_inline) {
    Py_INCREF(value);
    bool done = encode_value(encoder, node, value, depth, is_inline);
    Py_DECREF(value);
    return done;
}

static bool encode_list(Encoder *encoder, const Node *node, PyObject *value, int depth,
                        bool is_inline) {
    if (!PyList_CheckExact(value)) {
        return false;
    }
    Py_ssize_t count = PyList_GET_SIZE(value);
    if (count > node->max_len || !enter(encoder) || !put_array(encoder, count)) {
        return false;
    }
    for (Py_ssize_t index = 0; index < count; index++) {
        if (UNLIKELY(PyList_GET_SIZE(value) != count) ||
            !encode_held(encoder, node->items, PyList_GET_ITEM(value, index), depth, is_inline)) {
            return false;
        }
    }
    encoder->nesting--;
    return PyList_GET_SIZE(value) == count;
}

static bool encode_tuple(Encoder *encoder, const Node *node, PyObject *value, int depth,
                         bool is_inline) {
    if (!PyTuple_CheckExact(value) || PyTuple_GET_SIZE(value) != node->count ||
        !enter(encoder) || !put_array(encoder, node->count)) {
        return false;
    }
    for (Py_ssize_t index = 0; index < node->count; index++) {
        if (!encode_value(encoder, &node->items[index], PyTuple_GET_ITEM(value, index), depth,
                          is_inline)) {
            return false;
        }
    }
    encoder->nesting--;
    return true;
}

static bool encode_dict(Encoder *encoder, const Node *node, PyObject *value, int depth,
                        bool is_inline) {
    if (!PyDict_CheckExact(value)) {
        return false;
    }
    Py_ssize_t count = PyDict_GET_SIZE(value);
    if (count > node->max_len || !enter(encoder) || !put_map(encoder, count)) {
        return false;
    }
    PyObject *key, *item;
    Py_ssize_t position = 0, written = 0;
    while (PyDict_Next(value, &position, &key, &item)) {
        Py_INCREF(item);
        bool done = written++ < count && encode_held(encoder, &node->items[0], key, depth, true) &&
                    encode_value(encoder, &node->items[1], item, depth, is_inline);
        Py_DECREF(item);
        if (!done || UNLIKELY(PyDict_GET_SIZE(value) != count)) {
            return false;
        }
    }
    encoder->nesting--;
    return written == count;
}

static bool encode_plain(Encoder *encoder, PyObject *value, int depth) {
    if (value == Py_None) {
        return put_one(encoder, NIL);
    }
    if (PyBool_Check(value)) {
        return put_one(encoder, value == Py_True ? TRUE_BYTE : FALSE_BYTE);
    }
    if (PyUnicode_CheckExact(value)) {
        return encode_text(encoder, value, PY_SSIZE_T_MAX);
    }
    if (PyLong_CheckExact(value)) {
        return put_long(encoder, value);
    }
    if (PyFloat_CheckExact(value)) {
        unsigned char *at = writer_room(&encoder->writer, MAX_SCALAR);
        if (at == NULL) {
            return false;
        }
        writer_advance(&encoder->writer, put_double(at, PyFloat_AS_DOUBLE(value)));
        return true;
    }
    if (PyBytes_CheckExact(value)) {
        return put_bin(encoder, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value), value);
    }
    if (depth == 0) {
        return false;
    }
    /* Nothing below runs Python code, so the containers cannot change meanwhile. */
    if (PyList_CheckExact(value)) {
        Py_ssize_t count = PyList_GET_SIZE(value);
        bool done = put_array(encoder, count);
        for (Py_ssize_t index = 0; done && index < count; index++) {
            done = encode_plain(encoder, PyList_GET_ITEM(value, index), depth - 1);
        }
        return done;
    }
    if (PyDict_CheckExact(value)) {
        PyObject *key, *item;
        Py_ssize_t position = 0;
        bool done = put_map(encoder, PyDict_GET_SIZE(value));
        while (done && PyDict_Next(value, &position, &key, &item)) {
            done = encode_text(encoder, key, PY_SSIZE_T_MAX) &&
                   encode_plain(encoder, item, depth - 1);
        }
        return done;
    }
    return false;
}

/* Tensors */

static bool fits_shape(const Node *node, int rank, const int64_t *shape) {
    const TensorType *type = node->tensor;
    if (type->rank >= 0 && type->rank != rank) {
        return false;
    }
    uint64_t elements = 1;
    for (int axis = 0; axis < rank; axis++) {
        if (type->rank >= 0 && type->shape[axis] >= 0 && type->shape[axis] != shape[axis]) {
            return false;
        }
        elements *= (uint64_t)shape[axis];
    }
    return elements <= (uint64_t)node->max_len;
}

/* Write the payload of a slot that Python made: bytes, a view of memory, or a frame's index. */
static bool put_payload(Encoder *encoder, PyObject *payload) {
    if (PyLong_CheckExact(payload)) {
        return put_long(encoder, payload);
    }
    if (PyBytes_CheckExact(payload)) {
        return put_bin(encoder, PyBytes_AS_STRING(payload), PyBytes_GET_SIZE(payload), payload);
    }
    if (!PyMemoryView_Check(payload)) {
        return false;
    }
    /* A view of the view: nobody can release it before the payload is copied. */
    PyObject *own = PyMemoryView_FromObject(payload);
    if (own == NULL) {
        return false;
    }
    const Py_buffer *buffer = PyMemoryView_GET_BUFFER(own);
    bool done = PyBuffer_IsContiguous(buffer, 'C') &&
                put_bin(encoder, buffer->buf, buffer->len, own);
    Py_DECREF(own);
    return done;
}

/* Write a slot that Python made: a payload, or an array of integers that ends with one. */
static bool put_slot(Encoder *encoder, PyObject *slot) {
    if (!PyList_CheckExact(slot)) {
        return put_payload(encoder, slot);
    }
    Py_ssize_t last = PyList_GET_SIZE(slot) - 1;
    bool done = last >= 0 && put_array(encoder, last + 1);
    for (Py_ssize_t index = 0; done && index < last; index++) {
        PyObject *size = PyList_GET_ITEM(slot, index);
        done = PyLong_CheckExact(size) && put_long(encoder, size);
    }
    return done && put_payload(encoder, PyList_GET_ITEM(slot, last));
}

static bool read_shape(PyObject *value, int *rank, int64_t *shape) {
    PyObject *sizes = PyObject_GetAttrString(value, "shape");
    if (sizes == NULL || !PyTuple_Check(sizes) || PyTuple_GET_SIZE(sizes) > MAX_RANK) {
        Py_XDECREF(sizes);
        return false;
    }
    *rank = (int)PyTuple_GET_SIZE(sizes);
    for (int axis = 0; axis < *rank; axis++) {
        shape[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, axis));
    }
    Py_DECREF(sizes);
    return !PyErr_Occurred();
}

/* Tensors on a GPU, with gaps, of a subclass, or of a torch without the exchange interface. */
static bool encode_tensor_in_python(Encoder *encoder, const Node *node, PyObject *value,
                                    bool is_inline) {
    int rank;
    int64_t shape[MAX_RANK];
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) {
            return false; /* it ends the program */
        }
        PyErr_Clear();
    }
    bool may_frame = encoder->makes_frames && !is_inline;
    if (!writer_flush(&encoder->writer) || (may_frame && !open_frames(encoder)) ||
        (node->tensor->has_symbols &&
         (!read_shape(value, &rank, shape) ||
          !match_symbols(encoder->sizes, node->tensor, rank, shape)))) {
        return false;
    }
    PyObject *slot = PyObject_CallFunctionObjArgs(
        node->tensor->encode, value, may_frame ? encoder->frame_writer : Py_None, NULL);
    if (slot == NULL) {
        return false;
    }
    bool done = put_slot(encoder, slot);
    Py_DECREF(slot);
    return done;
}

/* Append a tensor's memory to the frames, without a copy. */
static bool add_frame(Encoder *encoder, PyObject *value) {
    if (!writer_flush(&encoder->writer) || !open_frames(encoder)) {
        return false;
    }
    PyObject *view = tensor_view_of(value);
    bool done = view != NULL && PyList_Append(encoder->frames, view) == 0;
    Py_XDECREF(view);
    return done && put_frame_index(encoder);
}

/* Bools as 0 and 1: a view of other bytes may hold any. */
static bool put_bools(Encoder *encoder, const unsigned char *data, Py_ssize_t size) {
    unsigned char *at = writer_room(&encoder->writer, MAX_SCALAR + size);
    if (at == NULL || (uint64_t)size > UINT32_MAX) {
        return false;
    }
    at = put_bin_head(at, (size_t)size);
    for (Py_ssize_t index = 0; index < size; index++) {
        at[index] = data[index] != 0;
    }
    writer_advance(&encoder->writer, at + size);
    return true;
}

static bool put_tensor(Encoder *encoder, const Node *node, PyObject *value,
                       const TensorView *view, bool is_inline) {
    const TensorType *type = node->tensor;
    if (type->dtype < 0 || type->rank != 1) {
        unsigned char *at = writer_room(&encoder->writer, (MAX_RANK + 2) * MAX_SCALAR);
        if (at == NULL) {
            return false;
        }
        at = put_array_head(at, (size_t)view->rank + (type->dtype < 0 ? 2 : 1));
        if (type->dtype < 0) {
            at = put_uint(at, (uint64_t)view->dtype);
        }
        for (int axis = 0; axis < view->rank; axis++) {
            at = put_uint(at, (uint64_t)view->shape[axis]);
        }
        writer_advance(&encoder->writer, at);
    }
    if (tensor_is_bool(view->dtype)) {
        return put_bools(encoder, view->data, view->size);
    }
    if (goes_into_frame(encoder, view->size, is_inline)) {
        return add_frame(encoder, value);
    }
    return put_bin(encoder, view->data, view->size, view->storage);
}

static bool put_fitting(Encoder *encoder, const Node *node, PyObject *value,
                        const TensorView *view, bool is_inline) {
    return (node->tensor->dtype < 0 || node->tensor->dtype == view->dtype) &&
           fits_shape(node, view->rank, view->shape) &&
           match_symbols(encoder->sizes, node->tensor, view->rank, view->shape) &&
           put_tensor(encoder, node, value, view, is_inline);
}

static bool encode_tensor(Encoder *encoder, const Node *node, PyObject *value, bool is_inline) {
    TensorView view;
    if (!tensor_is_plain(value) || !tensor_read(value, &view)) {
        return encode_tensor_in_python(encoder, node, value, is_inline);
    }
    bool in_python =
        tensor_is_bool(view.dtype) && goes_into_frame(encoder, view.size, is_inline);
    bool done = in_python ? encode_tensor_in_python(encoder, node, value, is_inline)
                          : put_fitting(encoder, node, value, &view, is_inline);
    Py_XDECREF(view.storage);
    return done;
}

/* Alternatives */

static bool put_option(Encoder *encoder, const Union *alternatives, PyObject *value,
                       const TensorView *view) {
    const Node *chosen = NULL;
    for (Py_ssize_t index = 0; index < alternatives->count; index++) {
        const Node *option = &alternatives->options[index];
        if (option->kind != KIND_TENSOR) {
            continue;
        }
        /* A symbol counts by the rank alone, whatever the dtype. */
        if (!match_symbols(encoder->sizes, option->tensor, view->rank, view->shape)) {
            return false;
        }
        if (chosen == NULL &&
            (option->tensor->dtype < 0 || option->tensor->dtype == view->dtype) &&
            (option->tensor->rank < 0 || option->tensor->rank == view->rank)) {
            chosen = option;
        }
    }
    return chosen != NULL && fits_shape(chosen, view->rank, view->shape) &&
           put_tensor(encoder, chosen, value, view, true);
}

static bool encode_tensor_option(Encoder *encoder, const Union *alternatives, PyObject *value) {
    TensorView view;
    if (!tensor_is_plain(value) || !tensor_read(value, &view)) {
        return false; /* Python chooses among the options */
    }
    bool done = put_option(encoder, alternatives, value, &view);
    Py_XDECREF(view.storage);
    return done;
}

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

/* Records */

static bool encode_value(Encoder *encoder, const Node *node, PyObject *value, int depth,
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
        PyObject *value;
        if (UNLIKELY(field->is_removed)) {
            value = Py_None;
        } else if (UNLIKELY((value = read_slot(message, field)) == NULL)) {
            return false; /* the attribute was deleted */
        }
        bool done = field->is_removed ? put_one(encoder, NIL)
                                      : encode_held(encoder, &field->node, value, depth, false);
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

static Record *find_root(const Plan *plan, PyObject *message) {
    Record *record = plan_record(plan, Py_TYPE(message));
    return record != NULL && record->is_root ? record : NULL;
}

static bool encode_root(Encoder *encoder, Record *record, PyObject *message) {
    return encode_record(encoder, record, message, MAX_DEPTH, record->root_head,
                         record->root_size);
}

/* A few numbers need no buffer that grows. */
static PyObject *encode_flat(Record *record, PyObject *message) {
    unsigned char buffer[MAX_HEAD + MAX_FLAT * MAX_SCALAR];
    memcpy(buffer, record->root_head, MAX_HEAD);
    unsigned char *end =
        put_run(buffer + record->root_size, record->fields, record->count, message);
    return LIKELY(end != NULL) ? PyBytes_FromStringAndSize((char *)buffer, end - buffer) : NULL;
}

/* Return a message as bytes; NULL where it is Python's turn, at times with an error set. */
PyObject *encode_whole(const Plan *plan, PyObject *message) {
    Record *record = find_root(plan, message);
    if (UNLIKELY(record == NULL)) {
        return NULL;
    }
    if (record->is_flat && !record->is_recursive && record_is_intact(record)) {
        return encode_flat(record, message);
    }
    Encoder encoder = {.plan = plan};
    if (!writer_open(&encoder.writer)) {
        return NULL;
    }
    PyObject *result = NULL;
    if (LIKELY(encode_root(&encoder, record, message))) {
        result = writer_finish(&encoder.writer);
    }
    writer_close(&encoder.writer);
    return result;
}

static PyObject *finish_frames(Encoder *encoder) {
    PyObject *head = writer_finish(&encoder->writer);
    if (head == NULL || encoder->frames == NULL || PyList_GET_SIZE(encoder->frames) == 0) {
        return head;
    }
    if (PyList_Insert(encoder->frames, 0, head) < 0) {
        Py_DECREF(head);
        return NULL;
    }
    Py_DECREF(head);
    return Py_NewRef(encoder->frames);
}

/* Return a message as bytes where no payload is large, else as a list of its head and payload
 * frames; NULL as above. */
PyObject *encode_framed(const Plan *plan, PyObject *message, Py_ssize_t threshold) {
    Record *record = find_root(plan, message);
    if (record == NULL) {
        return NULL;
    }
    Encoder encoder = {.plan = plan, .makes_frames = true, .threshold = threshold};
    if (!writer_open(&encoder.writer)) {
        return NULL;
    }
    PyObject *result = NULL;
    if (LIKELY(encode_root(&encoder, record, message))) {
        result = finish_frames(&encoder);
    }
    writer_close(&encoder.writer);
    Py_XDECREF(encoder.frames);
    Py_XDECREF(encoder.frame_writer);
    return result;
}
