/* Instances of generated classes. */
#ifndef MSGEN_INSTANCES_H
#define MSGEN_INSTANCES_H

#include "common.h"

bool instances_adopt(PyTypeObject *cls, Py_ssize_t slots);
PyObject *instance_new(PyTypeObject *cls);

#endif
