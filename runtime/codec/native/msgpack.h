/* msgpack, https://msgpack.org: its codes, numbers in its byte order, and heads of values, always
 * written in the shortest form. */
#ifndef MSGEN_MSGPACK_H
#define MSGEN_MSGPACK_H

#include "common.h"

enum { NIL = 0xc0, FALSE_BYTE = 0xc2, TRUE_BYTE = 0xc3, FLOAT32 = 0xca, FLOAT64 = 0xcb };
enum { MAX_SCALAR = 9 }; /* bytes of the longest number, and of the longest head */

static inline void store_u16(unsigned char *at, uint16_t value) {
    value = __builtin_bswap16(value);
    memcpy(at, &value, 2);
}

static inline void store_u32(unsigned char *at, uint32_t value) {
    value = __builtin_bswap32(value);
    memcpy(at, &value, 4);
}

static inline void store_u64(unsigned char *at, uint64_t value) {
    value = __builtin_bswap64(value);
    memcpy(at, &value, 8);
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

static inline unsigned char *put_uint(unsigned char *at, uint64_t value) {
    if (value < 0x80) {
        *at = (unsigned char)value;
        return at + 1;
    }
    if (value <= UINT8_MAX) {
        at[0] = 0xcc;
        at[1] = (unsigned char)value;
        return at + 2;
    }
    if (value <= UINT16_MAX) {
        at[0] = 0xcd;
        store_u16(at + 1, (uint16_t)value);
        return at + 3;
    }
    if (value <= UINT32_MAX) {
        at[0] = 0xce;
        store_u32(at + 1, (uint32_t)value);
        return at + 5;
    }
    at[0] = 0xcf;
    store_u64(at + 1, value);
    return at + 9;
}

static inline unsigned char *put_int(unsigned char *at, int64_t value) {
    if (value >= 0) {
        return put_uint(at, (uint64_t)value);
    }
    if (value >= -32) {
        *at = (unsigned char)value;
        return at + 1;
    }
    if (value >= INT8_MIN) {
        at[0] = 0xd0;
        at[1] = (unsigned char)value;
        return at + 2;
    }
    if (value >= INT16_MIN) {
        at[0] = 0xd1;
        store_u16(at + 1, (uint16_t)value);
        return at + 3;
    }
    if (value >= INT32_MIN) {
        at[0] = 0xd2;
        store_u32(at + 1, (uint32_t)value);
        return at + 5;
    }
    at[0] = 0xd3;
    store_u64(at + 1, (uint64_t)value);
    return at + 9;
}

static inline unsigned char *put_double(unsigned char *at, double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    at[0] = FLOAT64;
    store_u64(at + 1, bits);
    return at + 9;
}

static inline unsigned char *put_single(unsigned char *at, double value) {
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, 4);
    at[0] = FLOAT32;
    store_u32(at + 1, bits);
    return at + 5;
}

static inline unsigned char *put_long_head(unsigned char *at, size_t count, unsigned char code16) {
    if (count <= UINT16_MAX) {
        at[0] = code16;
        store_u16(at + 1, (uint16_t)count);
        return at + 3;
    }
    at[0] = code16 + 1;
    store_u32(at + 1, (uint32_t)count);
    return at + 5;
}

/* The counts and sizes below are at most UINT32_MAX: the caller sees to it. */

static inline unsigned char *put_array_head(unsigned char *at, size_t count) {
    if (count < 16) {
        *at = (unsigned char)(0x90 | count);
        return at + 1;
    }
    return put_long_head(at, count, 0xdc);
}

static inline unsigned char *put_map_head(unsigned char *at, size_t count) {
    if (count < 16) {
        *at = (unsigned char)(0x80 | count);
        return at + 1;
    }
    return put_long_head(at, count, 0xde);
}

static inline unsigned char *put_bin_head(unsigned char *at, size_t size) {
    if (size <= UINT8_MAX) {
        at[0] = 0xc4;
        at[1] = (unsigned char)size;
        return at + 2;
    }
    return put_long_head(at, size, 0xc5);
}

static inline unsigned char *put_str_head(unsigned char *at, size_t size) {
    if (size < 32) {
        *at = (unsigned char)(0xa0 | size);
        return at + 1;
    }
    if (size <= UINT8_MAX) {
        at[0] = 0xd9;
        at[1] = (unsigned char)size;
        return at + 2;
    }
    return put_long_head(at, size, 0xda);
}

#endif
