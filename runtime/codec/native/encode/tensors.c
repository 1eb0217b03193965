/* Tensors to msgpack: read in place where that is safe, else asked in Python. */
#include "../tensors.h"
#include "encoder.h"

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
    bool done = last >= 0 && put_head(encoder, last + 1, put_array_head);
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
    bool may_frame = encoder->threshold != NO_FRAMES && !is_inline;
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

/* Let a tensor's memory travel in a frame, without a copy. */
static bool frame_tensor(Encoder *encoder, PyObject *value) {
    if (!writer_flush(&encoder->writer)) {
        return false;
    }
    PyObject *view = tensor_view_of(value);
    bool done = view != NULL && add_frame(encoder, view);
    Py_XDECREF(view);
    return done;
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
        return frame_tensor(encoder, value);
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

bool encode_tensor(Encoder *encoder, const Node *node, PyObject *value, bool is_inline) {
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

bool encode_tensor_option(Encoder *encoder, const Union *alternatives, PyObject *value) {
    TensorView view;
    if (!tensor_is_plain(value) || !tensor_read(value, &view)) {
        return false; /* the table codec chooses among the options */
    }
    bool done = put_option(encoder, alternatives, value, &view);
    Py_XDECREF(view.storage);
    return done;
}
