/* What the files of encode/ share: the state of one call, and who writes what. */
#ifndef MSGEN_ENCODER_H
#define MSGEN_ENCODER_H

#include "../msgpack.h"
#include "../plan.h"
#include "encode.h"
#include "writer.h"

typedef struct {
    const Plan *plan;
    Writer writer;
    Py_ssize_t threshold;   /* bytes from which a payload gets a frame of its own, or NO_FRAMES */
    PyObject *frame_writer; /* of the class FrameWriter, NULL before it is needed */
    PyObject *frames;       /* its list of buffers */
    int nesting;            /* containers and records that are open */
    int64_t *sizes;         /* of the symbols of the record that is written, -1 before the first */
} Encoder;

/* records.c */
bool encode_value(Encoder *encoder, const Node *node, PyObject *value, int depth, bool is_inline);

/* values.c */
bool encode_number(Encoder *encoder, const Node *node, PyObject *value);
bool encode_enum(Encoder *encoder, const Node *node, PyObject *value);
bool encode_text(Encoder *encoder, PyObject *value, Py_ssize_t max_len);
bool encode_bytes(Encoder *encoder, PyObject *value, Py_ssize_t max_len, bool is_inline);
bool encode_list(Encoder *encoder, const Node *node, PyObject *value, int depth, bool is_inline);
bool encode_tuple(Encoder *encoder, const Node *node, PyObject *value, int depth, bool is_inline);
bool encode_dict(Encoder *encoder, const Node *node, PyObject *value, int depth, bool is_inline);
bool encode_plain(Encoder *encoder, PyObject *value, int depth);
bool put_long(Encoder *encoder, PyObject *value);

/* frames.c */
bool goes_into_frame(const Encoder *encoder, Py_ssize_t size, bool is_inline);
bool open_frames(Encoder *encoder);
bool add_frame(Encoder *encoder, PyObject *payload);

/* tensors.c */
bool encode_tensor(Encoder *encoder, const Node *node, PyObject *value, bool is_inline);
bool encode_tensor_option(Encoder *encoder, const Union *alternatives, PyObject *value);

/* Open a container: where they are many, the table codec says how it ends. */
static inline bool enter(Encoder *encoder) {
    if (UNLIKELY(encoder->nesting == MAX_NESTING)) {
        return false;
    }
    encoder->nesting++;
    return true;
}

/* Write a value that its container may let go of meanwhile. */
static inline bool encode_held(Encoder *encoder, const Node *node, PyObject *value, int depth,
                               bool is_inline) {
    Py_INCREF(value);
    bool done = encode_value(encoder, node, value, depth, is_inline);
    Py_DECREF(value);
    return done;
}

static inline bool put_one(Encoder *encoder, unsigned char byte) {
    return writer_put(&encoder->writer, &byte, 1);
}

/* Write the head of a value with so many items or bytes, by one of msgpack.h's functions. */
static inline bool put_head(Encoder *encoder, Py_ssize_t count,
                            unsigned char *put(unsigned char *, size_t)) {
    unsigned char *at = writer_room(&encoder->writer, MAX_SCALAR);
    if (at == NULL || (uint64_t)count > UINT32_MAX) {
        return false;
    }
    writer_advance(&encoder->writer, put(at, (size_t)count));
    return true;
}

static inline bool put_bin(Encoder *encoder, const void *data, Py_ssize_t size, PyObject *owner) {
    return put_head(encoder, size, put_bin_head) &&
           writer_payload(&encoder->writer, data, size, owner);
}

#endif
