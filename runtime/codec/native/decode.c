/* From bytes to messages.
 *
 * Nothing is trusted: every read is checked against the end, and no more room is made than the
 * bytes that are left could fill. What is read strictly here and taken differently by Python is
 * left to Python.
 */
#include "native.h"
#include "pack.h"

#include <math.h>

#define F32_MAX 0x1.fffffep127

enum { SKIP_DEPTH = 64 }; /* deeper arrays of unknown slots are left to Python */

typedef struct {
    const unsigned char *at, *end;
    Py_ssize_t budget; /* items that may still be announced: each takes a byte at least */
    int nesting;       /* containers and records that are open */
    Frames *frames;
    int64_t *sizes; /* of the symbols of the record that is read, -1 before the first */
} Decoder;

static PyObject *decode_value(Decoder *decoder, const Node *node, int depth, bool is_inline);
static PyObject *decode_record(Decoder *decoder, Record *record, Py_ssize_t count, int depth);

static inline Py_ssize_t left(const Decoder *decoder) {
    return decoder->end - decoder->at;
}

/* Open a container: where they are many, Python's own limits say how it ends. */
static inline bool enter(Decoder *decoder) {
    if (UNLIKELY(decoder->nesting == MAX_NESTING)) {
        return false;
    }
    decoder->nesting++;
    return true;
}

static inline uint16_t load_u16(const unsigned char *at) {
    uint16_t value;
    memcpy(&value, at, 2);
    return __builtin_bswap16(value);
}

static inline uint32_t load_u32(const unsigned char *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return __builtin_bswap32(value);
}

static inline uint64_t load_u64(const unsigned char *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return __builtin_bswap64(value);
}

/* Heads */

/* Read a number of `width` bytes after the code. */
static inline bool take_count(Decoder *decoder, int width, Py_ssize_t *count) {
    if (UNLIKELY(left(decoder) < 1 + width)) {
        return false;
    }
    const unsigned char *at = decoder->at + 1;
    *count = width == 1 ? *at : width == 2 ? load_u16(at) : (Py_ssize_t)load_u32(at);
    decoder->at += 1 + width;
    return true;
}

/* The codes of the values that have a head: `fixed` under `mask` holds a small count itself, the
 * others stand before one of 1, 2 or 4 bytes. */
typedef struct {
    unsigned char fixed, mask, code8, code16;
} Head;

enum { NO_CODE = 0xc1 }; /* which msgpack never uses */

static const Head ARRAY = {0x90, 0xf0, NO_CODE, 0xdc}, MAP = {0x80, 0xf0, NO_CODE, 0xde},
                  STR = {0xa0, 0xe0, 0xd9, 0xda}, BIN = {0x01, 0x00, 0xc4, 0xc5};

static inline bool is_fixed(Head head, unsigned char code) {
    return (code & head.mask) == head.fixed;
}

static inline bool begins(Head head, unsigned char code) {
    return is_fixed(head, code) || (code != NO_CODE && code == head.code8) ||
           code == head.code16 || code == head.code16 + 1;
}

static inline bool take_head(Decoder *decoder, Head head, Py_ssize_t *count) {
    if (UNLIKELY(left(decoder) < 1)) {
        return false;
    }
    unsigned char code = *decoder->at;
    if (is_fixed(head, code)) {
        *count = code & ~head.mask;
        decoder->at++;
        return true;
    }
    return begins(head, code) &&
           take_count(decoder, code == head.code8 ? 1 : code == head.code16 ? 2 : 4, count);
}

/* Hold the number of items that a container announces against the bytes of the message: many
 * containers inside one another cannot make more room than their bytes could fill. */
static inline bool afford(Decoder *decoder, Py_ssize_t count) {
    decoder->budget -= count;
    return LIKELY(decoder->budget >= 0);
}

static inline bool take_array(Decoder *decoder, Py_ssize_t *count) {
    return take_head(decoder, ARRAY, count) && afford(decoder, *count);
}

static inline bool take_map(Decoder *decoder, Py_ssize_t *count) {
    return take_head(decoder, MAP, count) && afford(decoder, 2 * *count);
}

static inline bool take_str(Decoder *decoder, Py_ssize_t *size) {
    return take_head(decoder, STR, size) && *size <= left(decoder);
}

static inline bool take_bin(Decoder *decoder, Py_ssize_t *size) {
    return take_head(decoder, BIN, size) && *size <= left(decoder);
}

/* Numbers */

typedef struct {
    bool is_large;   /* above INT64_MAX: only `bits` says it */
    int64_t number;
    uint64_t bits;
} Integer;

static inline bool take_integer(Decoder *decoder, Integer *out) {
    static const unsigned char widths[] = {1, 2, 4, 8, 1, 2, 4, 8};
    if (UNLIKELY(left(decoder) < 1)) {
        return false;
    }
    unsigned char code = *decoder->at;
    if (code < 0x80 || code >= 0xe0) {
        decoder->at++;
        *out = (Integer){false, (int8_t)code, (uint64_t)(int64_t)(int8_t)code};
        return true;
    }
    if (code < 0xcc || code > 0xd3 || left(decoder) < 1 + widths[code - 0xcc]) {
        return false;
    }
    const unsigned char *at = decoder->at + 1;
    decoder->at += 1 + widths[code - 0xcc];
    int64_t number;
    switch (code) {
    case 0xcc: number = *at; break;
    case 0xcd: number = load_u16(at); break;
    case 0xce: number = load_u32(at); break;
    case 0xcf: number = (int64_t)load_u64(at); break;
    case 0xd0: number = (int8_t)*at; break;
    case 0xd1: number = (int16_t)load_u16(at); break;
    case 0xd2: number = (int32_t)load_u32(at); break;
    default: number = (int64_t)load_u64(at); break;
    }
    *out = (Integer){code == 0xcf && number < 0, number, (uint64_t)number};
    return true;
}

static inline PyObject *decode_int(Decoder *decoder, const Node *node) {
    if (LIKELY(left(decoder) >= 1 && *decoder->at < 0x80)) {
        int number = *decoder->at++;
        return number >= node->low && (uint64_t)number <= node->high ? PyLong_FromLong(number)
                                                                     : NULL;
    }
    Integer value;
    if (UNLIKELY(!take_integer(decoder, &value))) {
        return NULL;
    }
    if (UNLIKELY(value.is_large)) {
        return value.bits <= node->high ? PyLong_FromUnsignedLongLong(value.bits) : NULL;
    }
    if (UNLIKELY(value.number < node->low ||
                 (value.number > 0 && value.bits > node->high))) {
        return NULL;
    }
    return PyLong_FromLongLong(value.number);
}

static bool take_double(Decoder *decoder, double *number) {
    if (LIKELY(left(decoder) >= 9 && *decoder->at == FLOAT64)) {
        uint64_t bits = load_u64(decoder->at + 1);
        memcpy(number, &bits, 8);
        decoder->at += 9;
        return true;
    }
    if (left(decoder) >= 5 && *decoder->at == FLOAT32) {
        uint32_t bits = load_u32(decoder->at + 1);
        float single;
        memcpy(&single, &bits, 4);
        *number = single;
        decoder->at += 5;
        return true;
    }
    return false;
}

static inline PyObject *decode_float(Decoder *decoder, const Node *node) {
    double number;
    if (UNLIKELY(!take_double(decoder, &number)) || (node->is_finite && !isfinite(number)) ||
        (node->is_single && fabs(number) > F32_MAX && !isinf(number))) {
        return NULL;
    }
    return PyFloat_FromDouble(number);
}

static inline PyObject *decode_bool(Decoder *decoder) {
    if (LIKELY(left(decoder) >= 1)) {
        unsigned char code = *decoder->at;
        if (code == TRUE_BYTE || code == FALSE_BYTE) {
            decoder->at++;
            return Py_NewRef(code == TRUE_BYTE ? Py_True : Py_False);
        }
    }
    return NULL;
}

static PyObject *decode_enum(Decoder *decoder, const Enum *type) {
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

static bool is_ascii(const void *data, Py_ssize_t size) {
    const unsigned char *text = data;
    Py_ssize_t index = 0;
    for (; index + 8 <= size; index += 8) {
        uint64_t word;
        memcpy(&word, text + index, 8);
        if (word & 0x8080808080808080u) {
            return false;
        }
    }
    unsigned char rest = 0;
    for (; index < size; index++) {
        rest |= text[index];
    }
    return rest < 0x80;
}

static PyObject *decode_text(Decoder *decoder, Py_ssize_t max_len) {
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
 * string nor its hash; the collector of garbage has no say, as strings refer to nothing. */
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

typedef struct {
    const void *data;
    Py_ssize_t size;
} Payload;

/* Read a payload that stands here, or fetch it from the frame whose index does. */
static bool take_payload(Decoder *decoder, bool is_inline, Payload *payload) {
    if (LIKELY(take_bin(decoder, &payload->size))) {
        payload->data = decoder->at;
        decoder->at += payload->size;
        return true;
    }
    Integer index;
    Frames *frames = decoder->frames;
    if (frames == NULL || is_inline || !take_integer(decoder, &index) || index.is_large ||
        index.number < 1 || index.number > frames->count || frames->taken[index.number - 1]) {
        return false;
    }
    frames->taken[index.number - 1] = true;
    payload->data = frames->views[index.number - 1].buf;
    payload->size = frames->views[index.number - 1].len;
    return true;
}

static PyObject *decode_bytes(Decoder *decoder, Py_ssize_t max_len, bool is_inline) {
    Payload payload;
    if (!take_payload(decoder, is_inline, &payload) || payload.size > max_len) {
        return NULL;
    }
    return PyBytes_FromStringAndSize(payload.data, payload.size);
}

/* Containers */

/* The collector hears of a list or tuple when it is complete: it may run at any allocation, and
 * show what it knows of to anybody. */
static PyObject *new_list(Py_ssize_t count) {
    PyObject *list = PyList_New(count);
    if (LIKELY(list != NULL)) {
        PyObject_GC_UnTrack(list);
    }
    return list;
}

static PyObject *end_list(Decoder *decoder, PyObject *list) {
    decoder->nesting--;
    if (LIKELY(list != NULL)) {
        PyObject_GC_Track(list);
    }
    return list;
}

static PyObject *decode_list(Decoder *decoder, const Node *node, int depth, bool is_inline) {
    Py_ssize_t count;
    if (!take_array(decoder, &count) || count > node->max_len || !enter(decoder)) {
        return NULL;
    }
    PyObject *list = new_list(count);
    for (Py_ssize_t index = 0; list != NULL && index < count; index++) {
        PyObject *item = decode_value(decoder, node->items, depth, is_inline);
        if (UNLIKELY(item == NULL)) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, index, item);
    }
    return end_list(decoder, list);
}

static PyObject *decode_tuple(Decoder *decoder, const Node *node, int depth, bool is_inline) {
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

static PyObject *decode_dict(Decoder *decoder, const Node *node, int depth, bool is_inline) {
    Py_ssize_t count;
    if (!take_map(decoder, &count) || count > node->max_len || !enter(decoder)) {
        return NULL;
    }
    PyObject *dict = PyDict_New();
    for (Py_ssize_t index = 0; dict != NULL && index < count; index++) {
        const Node *key_node = &node->items[0];
        PyObject *key = key_node->kind == KIND_STR ? decode_key(decoder, key_node->max_len)
                                                   : decode_value(decoder, key_node, depth, true);
        PyObject *item =
            key == NULL ? NULL : decode_value(decoder, &node->items[1], depth, is_inline);
        if (!store(dict, key, item)) {
            Py_CLEAR(dict);
        }
    }
    decoder->nesting--;
    if (dict != NULL && UNLIKELY(PyDict_GET_SIZE(dict) != count)) {
        Py_CLEAR(dict); /* which of equal keys wins is for Python to say */
    }
    return dict;
}

static PyObject *decode_plain(Decoder *decoder, int depth);

static PyObject *decode_plain_list(Decoder *decoder, int depth) {
    Py_ssize_t count;
    if (depth == 0 || !take_array(decoder, &count) || !enter(decoder)) {
        return NULL;
    }
    PyObject *list = new_list(count);
    for (Py_ssize_t index = 0; list != NULL && index < count; index++) {
        PyObject *item = decode_plain(decoder, depth - 1);
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, index, item);
    }
    return end_list(decoder, list);
}

static PyObject *decode_plain_dict(Decoder *decoder, int depth) {
    Py_ssize_t count;
    if (depth == 0 || !take_map(decoder, &count)) {
        return NULL;
    }
    PyObject *dict = PyDict_New();
    for (Py_ssize_t index = 0; dict != NULL && index < count; index++) {
        PyObject *key = decode_key(decoder, PY_SSIZE_T_MAX);
        PyObject *item = key == NULL ? NULL : decode_plain(decoder, depth - 1);
        if (!store(dict, key, item)) {
            Py_CLEAR(dict);
        }
    }
    decoder->nesting--;
    if (dict != NULL && UNLIKELY(PyDict_GET_SIZE(dict) != count)) {
        Py_CLEAR(dict); /* which of equal keys wins is for Python to say */
    }
    return dict;
}

static PyObject *decode_plain(Decoder *decoder, int depth) {
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
        return decode_plain_list(decoder, depth);
    }
    if (begins(MAP, code)) {
        return decode_plain_dict(decoder, depth);
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
static bool skip(Decoder *decoder, int depth) {
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

/* Tensors */

static PyObject *make_tensor(Decoder *decoder, const Node *node, int dtype, int rank,
                             int64_t *shape, const Payload *payload) {
    const TensorType *type = node->tensor;
    for (int axis = 0; type->rank >= 0 && axis < rank; axis++) {
        if (type->shape[axis] >= 0 && type->shape[axis] != shape[axis]) {
            return NULL;
        }
    }
    if (payload->size / tensor_item_size(dtype) > node->max_len ||
        !match_symbols(decoder->sizes, type, rank, shape)) {
        return NULL;
    }
    return tensor_make(dtype, rank, shape, payload->data, payload->size);
}

/* A fixed dtype and rank 1: the payload says the size. */
static PyObject *decode_vector(Decoder *decoder, const Node *node, bool is_inline) {
    int dtype = node->tensor->dtype;
    Payload payload;
    if (!tensor_is_decodable(dtype) || !take_payload(decoder, is_inline, &payload) ||
        payload.size % tensor_item_size(dtype) != 0) {
        return NULL;
    }
    int64_t shape[1] = {payload.size / tensor_item_size(dtype)};
    return make_tensor(decoder, node, dtype, 1, shape, &payload);
}

/* Read the dimensions; their product, times the item's size, is the payload's. */
static bool take_shape(Decoder *decoder, int rank, int64_t *shape) {
    for (int axis = 0; axis < rank; axis++) {
        Integer size;
        if (!take_integer(decoder, &size) || size.is_large || size.number < 0) {
            return false;
        }
        shape[axis] = size.number;
    }
    return true;
}

static bool has_size(int dtype, int rank, const int64_t *shape, Py_ssize_t size) {
    int64_t bytes = tensor_item_size(dtype), without_zeros = bytes;
    for (int axis = 0; axis < rank; axis++) {
        int64_t least_one = shape[axis] > 0 ? shape[axis] : 1;
        /* Sizes beside a zero could be beyond what strides can count. */
        if (least_one > PY_SSIZE_T_MAX / without_zeros) {
            return false;
        }
        without_zeros *= least_one;
        bytes *= shape[axis];
    }
    return bytes == size;
}

static PyObject *decode_shaped(Decoder *decoder, const Node *node, bool is_inline) {
    const TensorType *type = node->tensor;
    Py_ssize_t count;
    int64_t shape[MAX_RANK];
    int dtype = type->dtype, extra = type->dtype < 0 ? 2 : 1;
    if (!take_array(decoder, &count) || count < extra || count > MAX_RANK + extra ||
        (type->rank >= 0 && count != type->rank + extra)) {
        return NULL;
    }
    int rank = (int)count - extra;
    if (dtype < 0) {
        Integer number;
        if (!take_integer(decoder, &number) || number.is_large || number.number < 0 ||
            number.number > INT16_MAX) {
            return NULL;
        }
        dtype = (int)number.number;
    }
    Payload payload;
    if (!tensor_is_decodable(dtype) || !take_shape(decoder, rank, shape) ||
        !take_payload(decoder, is_inline, &payload) ||
        !has_size(dtype, rank, shape, payload.size)) {
        return NULL;
    }
    return make_tensor(decoder, node, dtype, rank, shape, &payload);
}

/* A torch without the exchange interface: the slot's own objects are handed to Python. */
static PyObject *decode_tensor_in_python(Decoder *decoder, const Node *node) {
    if (decoder->frames != NULL || node->tensor->has_symbols) {
        return NULL;
    }
    PyObject *slot = decode_plain(decoder, 2);
    if (slot == NULL) {
        return NULL;
    }
    PyObject *tensor = PyObject_CallOneArg(node->tensor->decode, slot);
    Py_DECREF(slot);
    return tensor;
}

static PyObject *decode_tensor(Decoder *decoder, const Node *node, bool is_inline) {
    if (!tensors_have_api()) {
        return decode_tensor_in_python(decoder, node);
    }
    if (node->tensor->dtype >= 0 && node->tensor->rank == 1) {
        return decode_vector(decoder, node, is_inline);
    }
    return decode_shaped(decoder, node, is_inline);
}

/* Alternatives */

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

/* A symbol counts in every tensor among the options by the rank alone, whatever the dtype. */
static bool match_options(Decoder *decoder, const Union *alternatives, PyObject *tensor) {
    TensorView view;
    if (!tensors_have_api() || !tensor_read(tensor, &view)) {
        return false;
    }
    bool matches = true;
    for (Py_ssize_t index = 0; index < alternatives->count; index++) {
        const Node *option = &alternatives->options[index];
        matches = matches && (option->kind != KIND_TENSOR ||
                              match_symbols(decoder->sizes, option->tensor, view.rank, view.shape));
    }
    Py_XDECREF(view.storage);
    return matches;
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

static PyObject *decode_value(Decoder *decoder, const Node *node, int depth, bool is_inline) {
    switch (node->kind) {
    case KIND_BOOL: return decode_bool(decoder);
    case KIND_INT: return decode_int(decoder, node);
    case KIND_FLOAT: return decode_float(decoder, node);
    case KIND_STR: return decode_text(decoder, node->max_len);
    case KIND_BYTES: return decode_bytes(decoder, node->max_len, is_inline);
    case KIND_PLAIN: return decode_plain(decoder, PLAIN_DEPTH);
    case KIND_LIST: return decode_list(decoder, node, depth, is_inline);
    case KIND_TUPLE: return decode_tuple(decoder, node, depth, is_inline);
    case KIND_DICT: return decode_dict(decoder, node, depth, is_inline);
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

/* Return the message of a head and its frames; NULL where it is Python's turn, at times with an
 * error set. */
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
