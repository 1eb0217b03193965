/* Numbers, text, bytes, containers and values of type `any`, to msgpack. */
#include "encoder.h"
#include "numbers.h"

bool put_long(Encoder *encoder, PyObject *value) {
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

bool encode_number(Encoder *encoder, const Node *node, PyObject *value) {
    unsigned char *at = writer_room(&encoder->writer, MAX_SCALAR);
    if (at == NULL || (at = put_number(at, node, value)) == NULL) {
        return false;
    }
    writer_advance(&encoder->writer, at);
    return true;
}

bool encode_enum(Encoder *encoder, const Node *node, PyObject *value) {
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

bool encode_text(Encoder *encoder, PyObject *value, Py_ssize_t max_len) {
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

bool encode_bytes(Encoder *encoder, PyObject *value, Py_ssize_t max_len, bool is_inline) {
    if (!PyBytes_CheckExact(value) || PyBytes_GET_SIZE(value) > max_len) {
        return false;
    }
    Py_ssize_t size = PyBytes_GET_SIZE(value);
    if (goes_into_frame(encoder, size, is_inline)) {
        return add_frame(encoder, value);
    }
    return put_bin(encoder, PyBytes_AS_STRING(value), size, value);
}

/* Containers: what they hold is theirs, so each item is held on to while it is written, and a
 * container that changes its length meanwhile is given up. */

bool encode_list(Encoder *encoder, const Node *node, PyObject *value, int depth,
                        bool is_inline) {
    if (!PyList_CheckExact(value)) {
        return false;
    }
    Py_ssize_t count = PyList_GET_SIZE(value);
    if (count > node->max_len || !enter(encoder) || !put_head(encoder, count, put_array_head)) {
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

bool encode_tuple(Encoder *encoder, const Node *node, PyObject *value, int depth,
                         bool is_inline) {
    if (!PyTuple_CheckExact(value) || PyTuple_GET_SIZE(value) != node->count ||
        !enter(encoder) || !put_head(encoder, node->count, put_array_head)) {
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

bool encode_dict(Encoder *encoder, const Node *node, PyObject *value, int depth,
                        bool is_inline) {
    if (!PyDict_CheckExact(value)) {
        return false;
    }
    Py_ssize_t count = PyDict_GET_SIZE(value);
    if (count > node->max_len || !enter(encoder) || !put_head(encoder, count, put_map_head)) {
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

bool encode_plain(Encoder *encoder, PyObject *value, int depth) {
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
        bool done = put_head(encoder, count, put_array_head);
        for (Py_ssize_t index = 0; done && index < count; index++) {
            done = encode_plain(encoder, PyList_GET_ITEM(value, index), depth - 1);
        }
        return done;
    }
    if (PyDict_CheckExact(value)) {
        PyObject *key, *item;
        Py_ssize_t position = 0;
        bool done = put_head(encoder, PyDict_GET_SIZE(value), put_map_head);
        while (done && PyDict_Next(value, &position, &key, &item)) {
            done = encode_text(encoder, key, PY_SSIZE_T_MAX) &&
                   encode_plain(encoder, item, depth - 1);
        }
        return done;
    }
    return false;
}
