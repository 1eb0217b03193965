/* The engine of one codec: its calls, and the Python module.
 *
 * A generated module hands over its description table once. plan.c compiles it to the structs of
 * plan.h, which encode/ and decode/ walk. They take what fits a field exactly and give up on the
 * rest: `false` or NULL, without a text. Then the call goes to the table codec, which converts the
 * message or explains what is wrong with it.
 *
 *   plan         the description table as structs; whether a class is as it was generated
 *   instances    objects of generated classes, made and freed without a detour
 *   tensors      tensors' memory, read and made through DLPack (dlpack_abi.h)
 *   msgpack.h    codes, heads and byte order
 *   encode/      records.c walks records and messages, values.c and tensors.c what is in them;
 *                frames.c sends large payloads beside the array; writer is the buffer
 *   decode/      records.c, values.c and tensors.c likewise; decoder.h reads heads
 *
 * Every function needs the GIL. It is let go only to copy more than COPY_WITHOUT_GIL bytes.
 */
#include "decode/decode.h"
#include "encode/encode.h"
#include "plan.h"
#include "tensors.h"

typedef struct {
    PyObject_HEAD
    Plan *plan;
    PyObject *encode, *encode_frames, *decode, *decode_frames; /* the table codec's */
} Engine;

enum { FRAMES_ON_STACK = 16 };

/* After a call gave up: say whether the table codec may try. Errors that end the program pass through. */
static bool give_up(void) {
    if (LIKELY(!PyErr_Occurred())) {
        return true;
    }
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        return false;
    }
    PyErr_Clear();
    return true;
}

static bool is_alive(const Engine *engine) {
    if (UNLIKELY(engine->encode == NULL)) {
        PyErr_SetString(PyExc_RuntimeError, "the codec is being freed");
        return false;
    }
    return true;
}

PyDoc_STRVAR(encode_doc, "encode($self, msg, /)\n--\n\n"
                         "Encode a message of the group.\n\n"
                         "Raises:\n"
                         "    EncodeError: a value does not fit its field; `path` names it.");

static PyObject *engine_encode(Engine *engine, PyObject *message) {
    if (!is_alive(engine)) {
        return NULL;
    }
    PyObject *result = encode_message(engine->plan, message, NO_FRAMES);
    if (LIKELY(result != NULL)) {
        return result;
    }
    return give_up() ? PyObject_CallOneArg(engine->encode, message) : NULL;
}

/* Return a list of one object, which it takes over. */
static PyObject *alone(PyObject *object) {
    PyObject *list = PyList_New(1);
    if (list == NULL) {
        Py_DECREF(object);
        return NULL;
    }
    PyList_SET_ITEM(list, 0, object);
    return list;
}

PyDoc_STRVAR(encode_frames_doc,
             "encode_frames($self, /, msg, threshold=65536)\n--\n\n"
             "Encode a message of the group into frames.\n\n"
             "Args:\n"
             "    msg: the message.\n"
             "    threshold: bytes from which a payload is given a frame of its own.\n\n"
             "Returns:\n"
             "    The head, then the payloads in the order of their slots. A payload may be a view\n"
             "    of the message's memory.\n\n"
             "Raises:\n"
             "    EncodeError: a value does not fit its field; `path` names it.");

static PyObject *engine_encode_frames(Engine *engine, PyObject *const *args, Py_ssize_t count,
                                      PyObject *names) {
    if (!is_alive(engine)) {
        return NULL;
    }
    /* Arguments of another kind are for the table codec to convert, or to refuse. */
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names), given = count + named;
    bool is_usable = count >= 1 && given <= 2 &&
                     (given == 1 || PyLong_CheckExact(args[1])) &&
                     (named == 0 || PyUnicode_CompareWithASCIIString(
                                        PyTuple_GET_ITEM(names, 0), "threshold") == 0);
    Py_ssize_t threshold = 64 * 1024;
    if (is_usable && given == 2) {
        threshold = PyLong_AsSsize_t(args[1]);
        is_usable = !PyErr_Occurred();
    }
    if (LIKELY(is_usable)) {
        PyObject *result = encode_message(engine->plan, args[0], threshold);
        if (LIKELY(result != NULL)) {
            return PyBytes_CheckExact(result) ? alone(result) : result;
        }
    }
    return give_up() ? PyObject_Vectorcall(engine->encode_frames, args, (size_t)count, names)
                     : NULL;
}

PyDoc_STRVAR(encode_for_doc,
             "encode_for($self, threshold, msg, /)\n--\n\n"
             "Encode a message of the group to its only frame, or else to its frames.\n\n"
             "Raises:\n"
             "    EncodeError: a value does not fit its field; `path` names it.");

static PyObject *engine_encode_for(Engine *engine, PyObject *const *args, Py_ssize_t count) {
    if (!is_alive(engine)) {
        return NULL;
    }
    if (count != 2) {
        return PyErr_Format(PyExc_TypeError, "encode_for takes a threshold and a message");
    }
    Py_ssize_t threshold = PyLong_AsSsize_t(args[0]);
    if (threshold == -1 && PyErr_Occurred()) {
        return NULL;
    }
    PyObject *result = encode_message(engine->plan, args[1], threshold);
    if (LIKELY(result != NULL)) {
        return result;
    }
    return give_up() ? PyObject_CallFunctionObjArgs(engine->encode_frames, args[1], args[0], NULL)
                     : NULL;
}

/* Decode a head alone; NULL where the table codec should try, at times with an error
 * set. */
static inline PyObject *decode_head(const Engine *engine, PyObject *data) {
    if (LIKELY(PyBytes_CheckExact(data))) {
        return decode_whole(engine->plan, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), NULL);
    }
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    PyObject *result = decode_whole(engine->plan, view.buf, view.len, NULL);
    PyBuffer_Release(&view);
    return result;
}

PyDoc_STRVAR(decode_doc,
             "decode($self, data, /)\n--\n\n"
             "Decode a message of the group.\n\n"
             "Raises:\n"
             "    DecodeError: the bytes are no message of the group; its subclasses say in what\n"
             "        way, `path` says where.");

static PyObject *engine_decode(Engine *engine, PyObject *data) {
    if (!is_alive(engine)) {
        return NULL;
    }
    PyObject *result = decode_head(engine, data);
    if (LIKELY(result != NULL)) {
        return result;
    }
    return give_up() ? PyObject_CallOneArg(engine->decode, data) : NULL;
}

static PyObject *decode_views(const Engine *engine, Py_buffer *views, Py_ssize_t count) {
    bool few[FRAMES_ON_STACK] = {false};
    bool *taken = count <= FRAMES_ON_STACK ? few : PyMem_Calloc((size_t)count, sizeof(bool));
    if (taken == NULL) {
        return PyErr_NoMemory();
    }
    Frames frames = {views + 1, count - 1, taken};
    PyObject *result = decode_whole(engine->plan, views[0].buf, views[0].len, &frames);
    if (taken != few) {
        PyMem_Free(taken);
    }
    return result;
}

/* Decode a head and its payloads; NULL where the table codec should try, at times with an error
 * set. */
static PyObject *decode_sequence(const Engine *engine, PyObject *sequence) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
    Py_buffer few[FRAMES_ON_STACK];
    if (count == 0) {
        return NULL;
    }
    Py_buffer *views =
        count <= FRAMES_ON_STACK ? few : PyMem_Calloc((size_t)count, sizeof(Py_buffer));
    if (views == NULL) {
        return PyErr_NoMemory();
    }
    Py_ssize_t got = 0;
    /* Asking for a buffer may run code that shortens the sequence. */
    while (got < count && got < PySequence_Fast_GET_SIZE(sequence)) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(sequence, got));
        int failed = PyObject_GetBuffer(item, &views[got], PyBUF_SIMPLE);
        Py_DECREF(item);
        if (failed) {
            break;
        }
        got++;
    }
    PyObject *result = got == count ? decode_views(engine, views, count) : NULL;
    while (got > 0) {
        PyBuffer_Release(&views[--got]);
    }
    if (views != few) {
        PyMem_Free(views);
    }
    return result;
}

PyDoc_STRVAR(decode_frames_doc,
             "decode_frames($self, frames, /)\n--\n\n"
             "Decode a message of the group from its frames.\n\n"
             "Args:\n"
             "    frames: the head, then the payloads, as `encode_frames` returned them.\n\n"
             "Raises:\n"
             "    DecodeError: the frames are no message of the group.");

static PyObject *engine_decode_frames(Engine *engine, PyObject *frames) {
    if (!is_alive(engine)) {
        return NULL;
    }
    if (PyList_CheckExact(frames) || PyTuple_CheckExact(frames)) {
        PyObject *result = decode_sequence(engine, frames);
        if (LIKELY(result != NULL)) {
            return result;
        }
    }
    return give_up() ? PyObject_CallOneArg(engine->decode_frames, frames) : NULL;
}

PyDoc_STRVAR(decode_received_doc,
             "decode_received($self, head, rest, /)\n--\n\n"
             "Decode a message that is most likely a head alone.\n\n"
             "Args:\n"
             "    head: the first frame.\n"
             "    rest: fetches the payload frames; called where the head does not do alone.\n\n"
             "Raises:\n"
             "    DecodeError: the frames are no message of the group.");

static PyObject *engine_decode_received(Engine *engine, PyObject *const *args,
                                        Py_ssize_t count) {
    if (!is_alive(engine)) {
        return NULL;
    }
    if (count != 2) {
        return PyErr_Format(PyExc_TypeError, "decode_received takes a head and a function");
    }
    PyObject *message = decode_head(engine, args[0]);
    if (LIKELY(message != NULL)) {
        return message;
    }
    if (!give_up()) {
        return NULL;
    }
    PyObject *rest = PyObject_CallNoArgs(args[1]);
    PyObject *list = rest == NULL ? NULL : PySequence_List(rest);
    Py_XDECREF(rest);
    if (list == NULL || PyList_Insert(list, 0, args[0]) < 0) {
        Py_XDECREF(list);
        return NULL;
    }
    PyObject *result = engine_decode_frames(engine, list);
    Py_DECREF(list);
    return result;
}

static PyObject *engine_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"records", "prefix",        "encode", "encode_frames",
                            "decode",  "decode_frames", NULL};
    PyObject *records, *encode, *encode_frames, *decode, *decode_frames;
    unsigned int prefix;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!IOOOO", names, &PyTuple_Type, &records,
                                     &prefix, &encode, &encode_frames, &decode,
                                     &decode_frames)) {
        return NULL;
    }
    Plan *plan = plan_new(records, prefix);
    if (plan == NULL) {
        return NULL;
    }
    Engine *engine = (Engine *)type->tp_alloc(type, 0);
    if (engine == NULL) {
        plan_free(plan);
        return NULL;
    }
    engine->plan = plan;
    engine->encode = Py_NewRef(encode);
    engine->encode_frames = Py_NewRef(encode_frames);
    engine->decode = Py_NewRef(decode);
    engine->decode_frames = Py_NewRef(decode_frames);
    return (PyObject *)engine;
}

static int engine_traverse(Engine *engine, visitproc visit, void *arg) {
    Py_VISIT(engine->plan->kept);
    Py_VISIT(engine->encode);
    Py_VISIT(engine->encode_frames);
    Py_VISIT(engine->decode);
    Py_VISIT(engine->decode_frames);
    return 0;
}

/* What the plan refers to stays until the engine goes: only the table codec is let go. */
static int engine_clear(Engine *engine) {
    Py_CLEAR(engine->encode);
    Py_CLEAR(engine->encode_frames);
    Py_CLEAR(engine->decode);
    Py_CLEAR(engine->decode_frames);
    return 0;
}

static void engine_dealloc(Engine *engine) {
    PyObject_GC_UnTrack(engine);
    engine_clear(engine);
    plan_free(engine->plan);
    Py_TYPE(engine)->tp_free(engine);
}

static PyMethodDef engine_methods[] = {
    {"encode", (PyCFunction)engine_encode, METH_O, encode_doc},
    {"encode_frames", (PyCFunction)(void (*)(void))engine_encode_frames,
     METH_FASTCALL | METH_KEYWORDS, encode_frames_doc},
    {"encode_for", (PyCFunction)(void (*)(void))engine_encode_for, METH_FASTCALL, encode_for_doc},
    {"decode", (PyCFunction)engine_decode, METH_O, decode_doc},
    {"decode_frames", (PyCFunction)engine_decode_frames, METH_O, decode_frames_doc},
    {"decode_received", (PyCFunction)(void (*)(void))engine_decode_received, METH_FASTCALL,
     decode_received_doc},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject engine_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msgen.runtime.codec._native.Engine",
    .tp_doc = PyDoc_STR("The compiled engine of one codec."),
    .tp_basicsize = sizeof(Engine),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = engine_new,
    .tp_dealloc = (destructor)engine_dealloc,
    .tp_traverse = (traverseproc)engine_traverse,
    .tp_clear = (inquiry)engine_clear,
    .tp_methods = engine_methods,
};

/* The module */

PyDoc_STRVAR(configure_doc,
             "configure($module, /, tensor, parameter, exchange_api, count_modes, view_of, "
             "frame_writer, samples)\n"
             "--\n\n"
             "Learn torch's classes and the helpers that stay Python.\n\n"
             "Args:\n"
             "    tensor: torch.Tensor.\n"
             "    parameter: torch.nn.Parameter.\n"
             "    exchange_api: the capsule of DLPack's C interface, or None for a torch without.\n"
             "    count_modes: torch's function that counts the active TorchFunctionModes.\n"
             "    view_of: returns a view of a tensor's memory.\n"
             "    frame_writer: the class FrameWriter.\n"
             "    samples: for each dtype, by its number, a CPU tensor of one element, or None for\n"
             "        one that this torch lacks.");

static PyObject *configure(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs) {
    static char *names[] = {"tensor",  "parameter",    "exchange_api", "count_modes",
                            "view_of", "frame_writer", "samples",      NULL};
    PyObject *tensor, *parameter, *exchange_api, *count_modes, *view_of, *frame_writer, *samples;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOOO", names, &tensor, &parameter,
                                     &exchange_api, &count_modes, &view_of, &frame_writer,
                                     &samples) ||
        !tensors_configure(tensor, parameter, exchange_api, count_modes, view_of, samples)) {
        return NULL;
    }
    encode_configure(frame_writer);
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
    {"configure", (PyCFunction)(void (*)(void))configure, METH_VARARGS | METH_KEYWORDS,
     configure_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "msgen.runtime.codec._native",
    .m_doc = PyDoc_STR("The compiled codec."),
    .m_size = -1,
    .m_methods = module_methods,
};

PyMODINIT_FUNC PyInit__native(void) {
    if (PyType_Ready(&engine_type) < 0) {
        return NULL;
    }
    PyObject *module = PyModule_Create(&module_def);
    if (module != NULL &&
        PyModule_AddObjectRef(module, "Engine", (PyObject *)&engine_type) < 0) {
        Py_CLEAR(module);
    }
    return module;
}
