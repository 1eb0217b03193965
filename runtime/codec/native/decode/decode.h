/* From bytes to messages: the call. */
#ifndef MSGEN_DECODE_H
#define MSGEN_DECODE_H

#include "../plan.h"

typedef struct {
    Py_buffer *views; /* of the payload frames; NULL where all payloads stand in the array */
    Py_ssize_t count;
    bool *taken;
} Frames;

PyObject *decode_whole(const Plan *plan, const void *data, Py_ssize_t size, Frames *frames);

#endif
