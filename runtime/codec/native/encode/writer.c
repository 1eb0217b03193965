#include "writer.h"

enum {
    FIRST_CAPACITY = 1 << 10,
    KEPT_CAPACITY = 1 << 20, /* a larger buffer is let go */
    SHELF = 8,
};

typedef struct {
    unsigned char *memory;
    Py_ssize_t capacity;
} Spare;

static Spare shelf[SHELF];
static int spares;

bool writer_open(Writer *writer) {
    *writer = (Writer){0};
    if (LIKELY(spares > 0)) {
        Spare spare = shelf[--spares];
        writer->memory = spare.memory;
        writer->capacity = spare.capacity;
        return true;
    }
    writer->memory = PyMem_Malloc(FIRST_CAPACITY);
    if (writer->memory == NULL) {
        PyErr_NoMemory();
        return false;
    }
    writer->capacity = FIRST_CAPACITY;
    return true;
}

static void drop_chunks(Writer *writer) {
    for (Py_ssize_t index = 0; index < writer->chunk_count; index++) {
        Py_DECREF(writer->chunks[index].owner);
    }
    writer->chunk_count = 0;
    writer->chunk_bytes = 0;
}

void writer_close(Writer *writer) {
    drop_chunks(writer); /* may run code that encodes: before the buffer is put back */
    PyMem_Free(writer->chunks);
    if (LIKELY(spares < SHELF && writer->capacity <= KEPT_CAPACITY)) {
        shelf[spares++] = (Spare){writer->memory, writer->capacity};
    } else {
        PyMem_Free(writer->memory);
    }
}

bool writer_grow(Writer *writer, Py_ssize_t more) {
    if (more > PY_SSIZE_T_MAX / 2 - writer->size) {
        PyErr_NoMemory();
        return false;
    }
    Py_ssize_t capacity = writer->capacity;
    while (capacity - writer->size < more) {
        capacity *= 2;
    }
    unsigned char *memory = PyMem_Realloc(writer->memory, (size_t)capacity);
    if (memory == NULL) {
        PyErr_NoMemory();
        return false;
    }
    writer->memory = memory;
    writer->capacity = capacity;
    return true;
}

/* Note a payload that follows here; `owner` keeps its memory alive. */
bool writer_note(Writer *writer, const void *data, Py_ssize_t size, PyObject *owner) {
    if (writer->chunk_count == writer->chunk_capacity) {
        Py_ssize_t capacity = writer->chunk_capacity == 0 ? 4 : 2 * writer->chunk_capacity;
        Chunk *chunks = PyMem_Realloc(writer->chunks, (size_t)capacity * sizeof(Chunk));
        if (chunks == NULL) {
            PyErr_NoMemory();
            return false;
        }
        writer->chunks = chunks;
        writer->chunk_capacity = capacity;
    }
    writer->chunks[writer->chunk_count++] =
        (Chunk){writer->size, data, size, Py_NewRef(owner)};
    writer->chunk_bytes += size;
    return true;
}

/* Copy buffer and payloads in their order; the two may be the same memory, back to front. */
static void assemble(const Writer *writer, unsigned char *into) {
    Py_ssize_t from = writer->size;
    Py_ssize_t to = writer->size + writer->chunk_bytes;
    for (Py_ssize_t index = writer->chunk_count; index-- > 0;) {
        const Chunk *chunk = &writer->chunks[index];
        Py_ssize_t between = from - chunk->at;
        memmove(into + to - between, writer->memory + chunk->at, (size_t)between);
        to -= between + chunk->size;
        memcpy(into + to, chunk->data, (size_t)chunk->size);
        from = chunk->at;
    }
    if (into != writer->memory) {
        memcpy(into, writer->memory, (size_t)from);
    }
}

/* Copy the noted payloads now, before Python code runs that could change or free them. */
bool writer_flush(Writer *writer) {
    if (writer->chunk_count == 0) {
        return true;
    }
    if (writer_room(writer, writer->chunk_bytes) == NULL) {
        return false;
    }
    assemble(writer, writer->memory);
    writer->size += writer->chunk_bytes;
    drop_chunks(writer);
    return true;
}

/* Return all that was written as bytes, or NULL with an error set. */
PyObject *writer_finish(Writer *writer) {
    PyObject *result = PyBytes_FromStringAndSize(NULL, writer->size + writer->chunk_bytes);
    if (result == NULL) {
        return NULL;
    }
    unsigned char *into = (unsigned char *)PyBytes_AS_STRING(result);
    if (LIKELY(writer->chunk_count == 0)) {
        memcpy(into, writer->memory, (size_t)writer->size);
    } else if (writer->chunk_bytes < COPY_WITHOUT_GIL) {
        assemble(writer, into);
    } else {
        Py_BEGIN_ALLOW_THREADS
        assemble(writer, into);
        Py_END_ALLOW_THREADS
    }
    return result;
}
