/* Enums, text, bytes, containers and values of type `any`, from msgpack. */
#include "numbers.h"

PyObject *decode_enum(Decoder *decoder, const Enum *type) {
    Integer value;
    if (!take_integer(decoder, &value)) {
        return NULL;
    }
    Py_ssize_t low = 0, high = value.is_large ? 0 : type->count;
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (type->numbers[middle] < value.number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (!value.is_large && low < type->count && type->numbers[low] == value.number) {
        return Py_NewRef(type->members[low]);
    }
    return Py_XNewRef(type->unknown);
}

/* Text and bytes */

/* Without a way out of the loop, which the compiler then widens. */
static bool is_ascii(const unsigned char *text, Py_ssize_t size) {
    uint64_t seen = 0;
    Py_ssize_t index = 0;
    for (; index + 8 <= size; index += 8) {
        uint64_t word;
        memcpy(&word, text + index, 8);
        seen |= word;
    }
    for (; index < size; index++) {
        seen |= text[index];
    }
    return (seen & 0x8080808080808080u) == 0;
}

PyObject *decode_text(Decoder *decoder, Py_ssize_t max_len) {
    Py_ssize_t size;
    if (!take_str(decoder, &size)) {
        return NULL;
    }
    const unsigned char *text = decoder->at;
    decoder->at += size;
    PyObject *value = NULL;
    if (LIKELY(size > 1)) {
        value = PyUnicode_New(size, 0x7f);
        if (value == NULL) {
            return NULL;
        }
        /* The copy is looked at: what was received may be changed by others meanwhile. */
        memcpy(PyUnicode_1BYTE_DATA(value), text, (size_t)size);
        if (UNLIKELY(!is_ascii(PyUnicode_1BYTE_DATA(value), size))) {
            Py_CLEAR(value);
        }
    }
    if (value == NULL) {
        value = PyUnicode_DecodeUTF8((const char *)text, size, NULL);
    }
    if (value != NULL && PyUnicode_GET_LENGTH(value) > max_len) {
        Py_CLEAR(value);
    }
    return value;
}

/* Short ASCII keys, which come again in every message: `role`, `content`. A hit costs neither a new
 * string nor its hash: without them a conversation takes 20 % longer. The collector of garbage has
 * no say, as strings refer to nothing. */
enum { KEYS = 512, MAX_KEY = 32 };
static PyObject *known_keys[KEYS]; /* guarded by the GIL */

static size_t key_place(const unsigned char *text, Py_ssize_t size) {
    uint64_t first = 0, last = 0;
    size_t part = (size_t)(size < 8 ? size : 8);
    memcpy(&first, text, part);
    memcpy(&last, text + size - (Py_ssize_t)part, part);
    uint64_t mixed = (first ^ last << 1 ^ (uint64_t)size) * 0x9e3779b97f4a7c15u;
    return (size_t)(mixed >> 32) % KEYS;
}

static PyObject *decode_key(Decoder *decoder, Py_ssize_t max_len) {
    Decoder ahead = *decoder;
    Py_ssize_t size;
    if (!take_str(&ahead, &size) || size < 2 || size > MAX_KEY || size > max_len) {
        return decode_text(decoder, max_len);
    }
    PyObject **place = &known_keys[key_place(ahead.at, size)];
    if (*place != NULL && PyUnicode_GET_LENGTH(*place) == size &&
        memcmp(PyUnicode_1BYTE_DATA(*place), ahead.at, (size_t)size) == 0) {
        decoder->at = ahead.at + size;
        return Py_NewRef(*place);
    }
    PyObject *key = decode_text(decoder, max_len);
    if (key != NULL && PyUnicode_IS_COMPACT_ASCII(key)) {
        Py_XSETREF(*place, Py_NewRef(key));
    }
    return key;
}

PyObject *decode_bytes(Decoder *decoder, Py_ssize_t max_len, bool is_inline) {
    Payload payload;
    if (!take_payload(decoder, is_inline, &payload) || payload.size > max_len) {
        return NULL;
    }
    return PyBytes_FromStringAndSize(payload.data, payload.size);
}

/* Containers */

/* The items of a list or dict: without a node they are plain values. */
static inline PyObject *decode_item(Decoder *decoder, const Node *node, int depth,
                                    bool is_inline) {
    return node == NULL ? decode_plain(decoder, depth)
                        : decode_value(decoder, node, depth, is_inline);
}

/* The collector hears of a list or tuple when it is complete: it may run at any allocation, and
 * show what it knows of to anybody. */

PyObject *decode_list(Decoder *decoder, const Node *node, Py_ssize_t max_len, int depth,
                      bool is_inline) {
    Py_ssize_t count;
    if (!take_array(decoder, &count) || count > max_len || !enter(decoder)) {
        return NULL;
    }
    PyObject *list = PyList_New(count);
    if (list != NULL) {
        PyObject_GC_UnTrack(list);
    }
    for (Py_ssize_t index = 0; list != NULL && index < count; index++) {
        PyObject *item = decode_item(decoder, node, depth, is_inline);
        if (UNLIKELY(item == NULL)) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, index, item);
    }
    decoder->nesting--;
    if (list != NULL) {
        PyObject_GC_Track(list);
    }
    return list;
}

PyObject *decode_tuple(Decoder *decoder, const Node *node, int depth, bool is_inline) {
    Py_ssize_t count;
    if (!take_array(decoder, &count) || count != node->count || !enter(decoder)) {
        return NULL;
    }
    PyObject *tuple = PyTuple_New(count); /* never empty: the schema sees to it, plan.c as well */
    if (tuple != NULL) {
        PyObject_GC_UnTrack(tuple);
    }
    for (Py_ssize_t index = 0; tuple != NULL && index < count; index++) {
        PyObject *item = decode_value(decoder, &node->items[index], depth, is_inline);
        if (item == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, index, item);
    }
    decoder->nesting--;
    if (tuple != NULL) {
        PyObject_GC_Track(tuple);
    }
    return tuple;
}

/* Put into a dict what was decoded; either may be NULL. Takes over both. */
static bool store(PyObject *dict, PyObject *key, PyObject *item) {
    bool done = key != NULL && item != NULL && PyDict_SetItem(dict, key, item) == 0;
    Py_XDECREF(key);
    Py_XDECREF(item);
    return done;
}

/* Keys and values by their two nodes; without them a plain dict. */
PyObject *decode_dict(Decoder *decoder, const Node *nodes, Py_ssize_t max_len, int depth,
                      bool is_inline) {
    Py_ssize_t count;
    if (!take_map(decoder, &count) || count > max_len || !enter(decoder)) {
        return NULL;
    }
    const Node *item_node = nodes == NULL ? NULL : &nodes[1];
    bool has_text_keys = nodes == NULL || nodes[0].kind == KIND_STR;
    Py_ssize_t longest_key = nodes == NULL ? PY_SSIZE_T_MAX : nodes[0].max_len;
    PyObject *dict = PyDict_New();
    for (Py_ssize_t index = 0; dict != NULL && index < count; index++) {
        PyObject *key = has_text_keys ? decode_key(decoder, longest_key)
                                      : decode_value(decoder, &nodes[0], depth, true);
        PyObject *item = key == NULL ? NULL : decode_item(decoder, item_node, depth, is_inline);
        if (!store(dict, key, item)) {
            Py_CLEAR(dict);
        }
    }
    decoder->nesting--;
    if (dict != NULL && UNLIKELY(PyDict_GET_SIZE(dict) != count)) {
        Py_CLEAR(dict); /* which of equal keys wins is for the table codec to say */
    }
    return dict;
}

PyObject *decode_plain(Decoder *decoder, int depth) {
    if (left(decoder) < 1) {
        return NULL;
    }
    unsigned char code = *decoder->at;
    if (code == NIL) {
        decoder->at++;
        return Py_NewRef(Py_None);
    }
    if (code == TRUE_BYTE || code == FALSE_BYTE) {
        return decode_bool(decoder);
    }
    if (code == FLOAT32 || code == FLOAT64) {
        double number;
        return take_double(decoder, &number) ? PyFloat_FromDouble(number) : NULL;
    }
    if (begins(STR, code)) {
        return decode_text(decoder, PY_SSIZE_T_MAX);
    }
    if (begins(ARRAY, code)) {
        return depth == 0 ? NULL : decode_list(decoder, NULL, PY_SSIZE_T_MAX, depth - 1, true);
    }
    if (begins(MAP, code)) {
        return depth == 0 ? NULL : decode_dict(decoder, NULL, PY_SSIZE_T_MAX, depth - 1, true);
    }
    if (begins(BIN, code)) {
        return decode_bytes(decoder, PY_SSIZE_T_MAX, true);
    }
    Integer value;
    if (!take_integer(decoder, &value)) {
        return NULL;
    }
    return value.is_large ? PyLong_FromUnsignedLongLong(value.bits)
                          : PyLong_FromLongLong(value.number);
}

static bool skip_scalar(Decoder *decoder) {
    PyObject *value = decode_plain(decoder, 0);
    Py_XDECREF(value);
    return value != NULL;
}

/* Pass over a slot that this build does not know, holding it to what msgpack would accept. */
bool skip(Decoder *decoder, int depth) {
    Py_ssize_t count;
    if (left(decoder) < 1 || depth == 0) {
        return false;
    }
    unsigned char code = *decoder->at;
    if (begins(ARRAY, code)) {
        bool done = take_array(decoder, &count);
        for (Py_ssize_t index = 0; done && index < count; index++) {
            done = skip(decoder, depth - 1);
        }
        return done;
    }
    if (begins(MAP, code)) {
        bool done = take_map(decoder, &count);
        for (Py_ssize_t index = 0; done && index < count; index++) {
            done = skip_scalar(decoder) && skip(decoder, depth - 1); /* no container is a key */
        }
        return done;
    }
    return skip_scalar(decoder);
}
