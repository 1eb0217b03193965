/* From messages to bytes: the calls. */
#ifndef MSGEN_ENCODE_H
#define MSGEN_ENCODE_H

#include "../plan.h"

#define NO_FRAMES PY_SSIZE_T_MAX /* as the threshold: all payloads stay in the array */

void encode_configure(PyObject *frame_writer);
PyObject *encode_message(const Plan *plan, PyObject *message, Py_ssize_t threshold);

#endif
