/* Bools, ints and floats to msgpack, written to room that is there. */
#ifndef MSGEN_ENCODE_NUMBERS_H
#define MSGEN_ENCODE_NUMBERS_H

#include "../msgpack.h"
#include "../plan.h"

#if PY_VERSION_HEX < 0x030b0000
#include <longintrepr.h>
#endif
#include <float.h>
#include <math.h>

/* Python's ints: most are small enough to be read in place. */

#if PY_VERSION_HEX >= 0x030c0000
static inline bool long_is_compact(PyObject *value) {
    return PyLong_CheckExact(value) && PyUnstable_Long_IsCompact((PyLongObject *)value);
}

static inline long long long_compact_value(PyObject *value) {
    return PyUnstable_Long_CompactValue((PyLongObject *)value);
}
#else
static inline bool long_is_compact(PyObject *value) {
    return PyLong_CheckExact(value) && (size_t)(Py_SIZE(value) + 1) < 3;
}

static inline long long long_compact_value(PyObject *value) {
    return Py_SIZE(value) * (long long)((PyLongObject *)value)->ob_digit[0];
}
#endif

/* All return the new end; NULL for no fit. */

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
    return fabs(number) > FLT_MAX && !isinf(number) ? NULL : put_single(at, number);
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

#endif
