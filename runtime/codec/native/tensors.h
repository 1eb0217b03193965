/* Tensors in and out, through DLPack's C interface. */
#ifndef MSGEN_TENSORS_H
#define MSGEN_TENSORS_H

#include "common.h"

/* A tensor's memory, as far as it can be read in place. */
typedef struct {
    const void *data;
    Py_ssize_t size; /* bytes */
    int dtype;       /* its number on the wire */
    int rank;
    int64_t *shape;
    PyObject *storage; /* keeps the memory alive whatever the tensor is made to be; NULL if empty */
} TensorView;

bool tensors_configure(PyObject *tensor, PyObject *parameter, PyObject *exchange_api,
                       PyObject *count_modes, PyObject *view_of, PyObject *samples);
bool tensors_have_api(void);
bool tensor_is_plain(PyObject *value);
bool tensor_read(PyObject *value, TensorView *view);
int tensor_item_size(int dtype);
bool tensor_is_bool(int dtype);
bool tensor_is_decodable(int dtype);
PyObject *tensor_make(int dtype, int rank, int64_t *shape, const void *payload, Py_ssize_t size);
PyObject *tensor_view_of(PyObject *value);
#endif
