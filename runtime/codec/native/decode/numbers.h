/* Bools, ints and floats from msgpack. */
#ifndef MSGEN_DECODE_NUMBERS_H
#define MSGEN_DECODE_NUMBERS_H

#include "decoder.h"

#include <float.h>
#include <math.h>

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

static inline bool take_double(Decoder *decoder, double *number) {
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
        (node->is_single && fabs(number) > FLT_MAX && !isinf(number))) {
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

#endif
