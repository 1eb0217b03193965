/* Payloads that travel beside the array, in frames of their own. */
#include "encode.h"
#include "encoder.h"

static PyObject *frame_writer_class;

void encode_configure(PyObject *frame_writer) {
    Py_XSETREF(frame_writer_class, Py_NewRef(frame_writer));
}

bool goes_into_frame(const Encoder *encoder, Py_ssize_t size, bool is_inline) {
    return !is_inline && size >= encoder->threshold;
}

/* Make the list of frames, which most messages need none of. */
bool open_frames(Encoder *encoder) {
    if (encoder->frames != NULL) {
        return true;
    }
    encoder->frame_writer = PyObject_CallFunction(frame_writer_class, "n", encoder->threshold);
    if (encoder->frame_writer != NULL) {
        encoder->frames = PyObject_GetAttrString(encoder->frame_writer, "buffers");
    }
    return encoder->frames != NULL && PyList_CheckExact(encoder->frames);
}

/* Append a payload to the frames, without a copy, and write its frame's index. */
bool add_frame(Encoder *encoder, PyObject *payload) {
    if (!open_frames(encoder) || PyList_Append(encoder->frames, payload) < 0) {
        return false;
    }
    unsigned char *at = writer_room(&encoder->writer, MAX_SCALAR);
    if (at == NULL) {
        return false;
    }
    uint64_t index = (uint64_t)PyList_GET_SIZE(encoder->frames);
    writer_advance(&encoder->writer, put_uint(at, index));
    return true;
}
