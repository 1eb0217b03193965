/* Where a message is written: one buffer that grows, and large payloads beside it.
 *
 * A large payload is not put into the buffer. It is noted with its place, and copied once, into
 * the bytes object that is returned. Buffers are kept for the next message, one for each thread
 * that encodes at a time; the GIL guards the shelf. Without it a request takes 5 % longer, a
 * conversation 10 %.
 */
#ifndef MSGEN_WRITER_H
#define MSGEN_WRITER_H

#include "../common.h"

enum { CHUNK_FROM = 1024 }; /* bytes from which noting a payload costs less than copying it twice */

typedef struct {
    Py_ssize_t at; /* offset in the buffer before which it stands */
    const void *data;
    Py_ssize_t size;
    PyObject *owner;
} Chunk;

typedef struct {
    unsigned char *memory;
    Py_ssize_t size, capacity;
    Chunk *chunks;
    Py_ssize_t chunk_count, chunk_capacity, chunk_bytes;
} Writer;

bool writer_open(Writer *writer);
void writer_close(Writer *writer);
bool writer_grow(Writer *writer, Py_ssize_t more);
bool writer_flush(Writer *writer);
PyObject *writer_finish(Writer *writer);
bool writer_note(Writer *writer, const void *data, Py_ssize_t size, PyObject *owner);

/* Return room for at least `more` bytes, or NULL. */
static inline unsigned char *writer_room(Writer *writer, Py_ssize_t more) {
    if (UNLIKELY(writer->capacity - writer->size < more) && !writer_grow(writer, more)) {
        return NULL;
    }
    return writer->memory + writer->size;
}

static inline void writer_advance(Writer *writer, const unsigned char *end) {
    writer->size = end - writer->memory;
}

static inline bool writer_put(Writer *writer, const void *data, Py_ssize_t size) {
    unsigned char *at = writer_room(writer, size);
    if (at == NULL) {
        return false;
    }
    memcpy(at, data, (size_t)size);
    writer->size += size;
    return true;
}

/* Write the content of a value whose head is written. */
static inline bool writer_payload(Writer *writer, const void *data, Py_ssize_t size,
                                  PyObject *owner) {
    if (size >= CHUNK_FROM) {
        return writer_note(writer, data, size, owner);
    }
    return size == 0 || writer_put(writer, data, size);
}

#endif
