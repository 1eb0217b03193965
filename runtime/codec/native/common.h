/* What every file of the compiled engine needs: Python, and limits that several share. */
#ifndef MSGEN_COMMON_H
#define MSGEN_COMMON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors travel as they lie in memory: little-endian hosts only"
#endif

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

enum {
    MAX_DEPTH = 64,    /* times that a recursive record may stand inside itself */
    MAX_NESTING = 400, /* open containers: with more, the table codec says how it ends */
    PLAIN_DEPTH = 32,  /* levels of lists and dicts in a value of type `any` */
    MAX_RANK = 64,     /* dimensions of a tensor */
    MAX_SYMBOLS = 64,  /* dimension symbols of a record; plan.c refuses more */
};

#define COPY_WITHOUT_GIL (1 << 20) /* bytes from which other threads may run while we copy */

#endif
