/* Tensors from msgpack. */
#include "../tensors.h"
#include "decoder.h"

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

PyObject *decode_tensor(Decoder *decoder, const Node *node, bool is_inline) {
    if (!tensors_have_api()) {
        return decode_tensor_in_python(decoder, node);
    }
    if (node->tensor->dtype >= 0 && node->tensor->rank == 1) {
        return decode_vector(decoder, node, is_inline);
    }
    return decode_shaped(decoder, node, is_inline);
}

/* A symbol counts in every tensor among the options by the rank alone, whatever the dtype. */
bool match_options(Decoder *decoder, const Union *alternatives, PyObject *tensor) {
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
