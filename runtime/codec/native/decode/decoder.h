/* What the files of decode/ share: the state of one call, reading heads and integers, and who reads
 * what.
 *
 * Nothing is trusted: every read is checked against the end, and no more room is made than the
 * bytes that are left could fill.
 */
#ifndef MSGEN_DECODER_H
#define MSGEN_DECODER_H

#include "../msgpack.h"
#include "../plan.h"
#include "decode.h"

typedef struct {
    const unsigned char *at, *end;
    Py_ssize_t budget; /* items that may still be announced: each takes a byte at least */
    int nesting;       /* containers and records that are open */
    Frames *frames;
    int64_t *sizes; /* of the symbols of the record that is read, -1 before the first */
} Decoder;

/* records.c */
PyObject *decode_value(Decoder *decoder, const Node *node, int depth, bool is_inline);

/* values.c */
PyObject *decode_enum(Decoder *decoder, const Enum *type);
PyObject *decode_text(Decoder *decoder, Py_ssize_t max_len);
PyObject *decode_bytes(Decoder *decoder, Py_ssize_t max_len, bool is_inline);
PyObject *decode_list(Decoder *decoder, const Node *node, Py_ssize_t max_len, int depth,
                      bool is_inline);
PyObject *decode_tuple(Decoder *decoder, const Node *node, int depth, bool is_inline);
PyObject *decode_dict(Decoder *decoder, const Node *nodes, Py_ssize_t max_len, int depth,
                      bool is_inline);
PyObject *decode_plain(Decoder *decoder, int depth);
bool skip(Decoder *decoder, int depth);

/* tensors.c */
PyObject *decode_tensor(Decoder *decoder, const Node *node, bool is_inline);
bool match_options(Decoder *decoder, const Union *alternatives, PyObject *tensor);

static inline Py_ssize_t left(const Decoder *decoder) {
    return decoder->end - decoder->at;
}

/* Open a container: where they are many, the table codec says how it ends. */
static inline bool enter(Decoder *decoder) {
    if (UNLIKELY(decoder->nesting == MAX_NESTING)) {
        return false;
    }
    decoder->nesting++;
    return true;
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

typedef struct {
    const void *data;
    Py_ssize_t size;
} Payload;

/* Read a payload that stands here, or fetch it from the frame whose index does. */
static inline bool take_payload(Decoder *decoder, bool is_inline, Payload *payload) {
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

#endif
