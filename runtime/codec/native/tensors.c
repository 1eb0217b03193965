/* Tensors in and out through DLPack's C interface, without linking torch.
 *
 * Reading gives the memory of a contiguous CPU tensor in place. Making cuts small tensors from
 * blocks, as runtime/arena.py does: a piece is handed out once, and a block is freed with the last
 * tensor cut from it. Each piece begins with its DLPack record, behind which its data lies,
 * aligned to 64 bytes.
 */
#include "tensors.h"

#include "dlpack_abi.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    ALIGNMENT = 64,
    SMALL = 4 * 1024, /* bytes of data up to which a tensor is cut from a block */
    BLOCK = 64 * 1024,
    MAX_DTYPES = 32,
};

static DlDtype dtypes[MAX_DTYPES]; /* by number on the wire; all zeros where torch has no such */
static int dtype_count;
enum { CODE_FLOAT = 2, CODE_BFLOAT = 4, CODE_COMPLEX = 5, CODE_BOOL = 6, CODE_FLOAT8 = 7 };

static const DlExchange *exchange; /* NULL where torch has no such interface */
static PyTypeObject *tensor_type, *parameter_type;
static PyObject *untyped_storage, *storage_offset, *is_neg, *is_conj; /* methods of Tensor */
static PyObject *mode_count; /* of TorchFunctionModes that are active */
static PyObject *view_of;
static bool decodable[MAX_DTYPES];

int tensor_item_size(int dtype) {
    return dtypes[dtype].bits / 8;
}

bool tensor_is_decodable(int dtype) {
    return dtype >= 0 && dtype < dtype_count && decodable[dtype];
}

bool tensor_is_bool(int dtype) {
    return dtypes[dtype].code == CODE_BOOL;
}

bool tensors_have_api(void) {
    return exchange != NULL;
}

static int dtype_number(DlDtype dtype) {
    for (int number = 0; number < dtype_count; number++) {
        if (dtypes[number].code == dtype.code && dtypes[number].bits == dtype.bits &&
            dtype.lanes == 1) {
            return number;
        }
    }
    return -1;
}

/* Reading */

/* Say whether a value is a tensor that Python code has no say in: of no subclass, and with no
 * TorchFunctionMode that hears of every call. */
bool tensor_is_plain(PyObject *value) {
    if (exchange == NULL ||
        !(Py_IS_TYPE(value, tensor_type) || Py_IS_TYPE(value, parameter_type))) {
        return false;
    }
    PyObject *modes = PyCFunction_GET_FUNCTION(mode_count)(PyCFunction_GET_SELF(mode_count), NULL);
    bool is_plain = modes != NULL && PyLong_CheckExact(modes) && PyLong_AsLong(modes) == 0;
    Py_XDECREF(modes);
    return is_plain;
}

static bool is_contiguous(const DlTensor *tensor) {
    if (tensor->strides == NULL) {
        return true;
    }
    uint64_t expected = 1; /* sizes beside a zero may be beyond counting */
    bool has_gaps = false;
    for (int axis = tensor->rank; axis-- > 0;) {
        has_gaps |= tensor->shape[axis] != 1 && (uint64_t)tensor->strides[axis] != expected;
        expected *= (uint64_t)tensor->shape[axis];
    }
    return !has_gaps || expected == 0; /* without elements there are no gaps */
}

/* Call a method without arguments: of one that is written in C, the function itself. */
static inline PyObject *call(PyObject *method, PyObject *value) {
    if (LIKELY(Py_IS_TYPE(method, &PyMethodDescr_Type))) {
        const PyMethodDef *def = ((PyMethodDescrObject *)method)->d_method;
        if (LIKELY((def->ml_flags & (METH_NOARGS | METH_VARARGS | METH_FASTCALL | METH_O)) ==
                   METH_NOARGS)) {
            return def->ml_meth(value, NULL);
        }
    }
    return PyObject_CallOneArg(method, value);
}

static bool is_true(PyObject *method, PyObject *value) {
    PyObject *answer = call(method, value);
    bool result = answer != Py_False; /* an error counts as a reason to ask Python */
    Py_XDECREF(answer);
    return result;
}

/* Return a tensor's storage; NULL where that holds less than the tensor takes. A storage can be
 * resized under its tensors, and reading past its end could end the process. */
static PyObject *storage_around(PyObject *value, Py_ssize_t size, Py_ssize_t item_size) {
    PyObject *storage = call(untyped_storage, value);
    PyObject *offset = storage == NULL ? NULL : call(storage_offset, value);
    if (offset == NULL) {
        Py_XDECREF(storage);
        return NULL;
    }
    Py_ssize_t stored = PyObject_Size(storage), elements = PyLong_AsSsize_t(offset);
    Py_DECREF(offset);
    if (stored < size || elements < 0 || elements > (stored - size) / item_size) {
        Py_CLEAR(storage);
    }
    return storage;
}

static bool may_be_lazy(DlDtype dtype) {
    return dtype.code == CODE_FLOAT || dtype.code == CODE_BFLOAT || dtype.code == CODE_COMPLEX ||
           dtype.code >= CODE_FLOAT8;
}

/* Say whether a tensor's memory holds its values as they are, not to be negated or conjugated. */
static bool holds_values(PyObject *value, DlDtype dtype) {
    return !may_be_lazy(dtype) ||
           !(is_true(is_neg, value) ||
             (dtype.code == CODE_COMPLEX && is_true(is_conj, value)));
}

/* Find the memory of a plain tensor; false where it must be asked in Python.
 *
 * Torch lets other threads run in some of its calls, where these may give the tensor other memory.
 * So it is described after them; nothing happens between the description and the storage.
 */
bool tensor_read(PyObject *value, TensorView *view) {
    DlTensor tensor;
    if (exchange->describe(value, &tensor) < 0 ||
        (may_be_lazy(tensor.dtype) && (!holds_values(value, tensor.dtype) ||
                                       exchange->describe(value, &tensor) < 0))) {
        return false;
    }
    view->dtype = dtype_number(tensor.dtype);
    if (view->dtype < 0 || tensor.device.type != DEVICE_CPU || tensor.rank > MAX_RANK ||
        !is_contiguous(&tensor)) {
        return false;
    }
    uint64_t size = (uint64_t)tensor_item_size(view->dtype);
    for (int axis = 0; axis < tensor.rank; axis++) {
        size *= (uint64_t)tensor.shape[axis];
    }
    view->data = (const char *)tensor.data + tensor.byte_offset;
    view->size = (Py_ssize_t)size;
    view->rank = tensor.rank;
    view->shape = tensor.shape;
    view->storage = NULL;
    if (size == 0) {
        return true;
    }
    if (tensor.data == NULL || view->size < 0) {
        return false;
    }
    view->storage = storage_around(value, view->size, tensor_item_size(view->dtype));
    return view->storage != NULL;
}

/* Return a view of a tensor's memory that keeps it alive. */
PyObject *tensor_view_of(PyObject *value) {
    return PyObject_CallOneArg(view_of, value);
}

/* Making */

typedef struct {
    atomic_size_t users; /* tensors cut from it, and the shelf while it is there */
    size_t used;         /* bytes, this head included */
} Block;

typedef struct {
    DlManaged managed;
    int64_t shape_and_strides[];
} Piece;

static Block *open_block; /* guarded by the GIL */

static size_t aligned(size_t size) {
    return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

static Block *new_block(size_t size) {
    void *memory;
    if (posix_memalign(&memory, ALIGNMENT, size) != 0) {
        PyErr_NoMemory();
        return NULL;
    }
    Block *block = memory;
    atomic_init(&block->users, 1);
    block->used = aligned(sizeof(Block));
    return block;
}

/* Torch may let go of a tensor in any thread, with or without the GIL. */
static void leave_block(Block *block) {
    if (atomic_fetch_sub_explicit(&block->users, 1, memory_order_acq_rel) == 1) {
        free(block);
    }
}

static void delete_piece(DlManaged *managed) {
    leave_block(managed->context);
}

/* Return memory for a piece, which counts as one user of its block. */
static Piece *cut_piece(size_t head, size_t size) {
    size_t needed = aligned(head) + aligned(size);
    if (size > SMALL) {
        Block *block = new_block(aligned(sizeof(Block)) + needed);
        if (block == NULL) {
            return NULL;
        }
        Piece *piece = (Piece *)((char *)block + block->used);
        piece->managed.context = block;
        return piece;
    }
    if (open_block == NULL || BLOCK - open_block->used < needed) {
        Block *block = new_block(BLOCK);
        if (block == NULL) {
            return NULL;
        }
        if (open_block != NULL) {
            leave_block(open_block);
        }
        open_block = block;
    }
    Piece *piece = (Piece *)((char *)open_block + open_block->used);
    open_block->used += needed;
    atomic_fetch_add_explicit(&open_block->users, 1, memory_order_relaxed);
    piece->managed.context = open_block;
    return piece;
}

static void describe_piece(Piece *piece, int dtype, int rank, const int64_t *shape, void *data) {
    int64_t *sizes = piece->shape_and_strides, *strides = sizes + rank;
    int64_t stride = 1;
    for (int axis = rank; axis-- > 0;) {
        sizes[axis] = shape[axis];
        strides[axis] = stride;
        stride *= shape[axis] > 0 ? shape[axis] : 1;
    }
    piece->managed.version = (DlVersion){DLPACK_MAJOR, DLPACK_MINOR};
    piece->managed.deleter = delete_piece;
    piece->managed.flags = 0;
    piece->managed.tensor = (DlTensor){
        .data = data,
        .device = {DEVICE_CPU, 0},
        .rank = rank,
        .dtype = dtypes[dtype],
        .shape = sizes,
        .strides = strides,
    };
}

static void copy_payload(void *into, const void *payload, Py_ssize_t size) {
    if (size < COPY_WITHOUT_GIL) {
        memcpy(into, payload, (size_t)size);
        return;
    }
    Py_BEGIN_ALLOW_THREADS
    memcpy(into, payload, (size_t)size);
    Py_END_ALLOW_THREADS
}

static bool holds_bools(const unsigned char *bytes, Py_ssize_t size) {
    unsigned char all = 0;
    for (Py_ssize_t index = 0; index < size; index++) {
        all |= bytes[index];
    }
    return all <= 1;
}

/* Return a tensor that owns a copy of a payload; NULL with or without an error set.
 *
 * `size` is that of the shape's elements, and the dtype decodable.
 */
PyObject *tensor_make(int dtype, int rank, int64_t *shape, const void *payload, Py_ssize_t size) {
    size_t head = sizeof(Piece) + 2 * (size_t)rank * sizeof(int64_t);
    Piece *piece = cut_piece(head, (size_t)size);
    if (piece == NULL) {
        return NULL;
    }
    unsigned char *data = (unsigned char *)piece + aligned(head);
    if (size > 0) {
        copy_payload(data, payload, size);
    }
    /* The copy is looked at: what was received may be changed by others meanwhile. */
    if (tensor_is_bool(dtype) && !holds_bools(data, size)) {
        leave_block(piece->managed.context);
        return NULL;
    }
    describe_piece(piece, dtype, rank, shape, data);
    void *tensor;
    if (exchange->import_owned(&piece->managed, &tensor) < 0) {
        return NULL;
    }
    return tensor;
}

/* Set-up */

static const DlExchange *find_exchange(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, "dlpack_exchange_api")) {
        return NULL;
    }
    const DlExchange *found = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    while (found != NULL && found->version.major != DLPACK_MAJOR) {
        found = found->older;
    }
    return found == NULL || found->describe == NULL || found->import_owned == NULL ? NULL : found;
}

/* Ask torch how DLPack calls each dtype, by a tensor of one element or None for each. */
static void learn_dtypes(PyObject *samples) {
    dtype_count = (int)PyTuple_GET_SIZE(samples);
    for (int number = 0; number < dtype_count; number++) {
        PyObject *sample = PyTuple_GET_ITEM(samples, number);
        DlTensor tensor;
        bool is_known = sample != Py_None && exchange->describe(sample, &tensor) == 0;
        dtypes[number] = is_known ? tensor.dtype : (DlDtype){0};
        PyErr_Clear();
    }
}

/* Try which dtypes this torch takes from DLPack. A refused try costs its piece, once. */
static void try_dtypes(void) {
    static const unsigned char zeros[16];
    for (int dtype = 0; dtype < dtype_count; dtype++) {
        int64_t shape[1] = {1};
        Py_ssize_t size = tensor_item_size(dtype);
        PyObject *tensor = size == 0 ? NULL : tensor_make(dtype, 1, shape, zeros, size);
        decodable[dtype] = tensor != NULL;
        Py_XDECREF(tensor);
        PyErr_Clear();
    }
}

static bool find_method(PyObject *cls, const char *name, PyObject **method) {
    PyObject *found = PyObject_GetAttrString(cls, name);
    if (found == NULL) {
        return false;
    }
    Py_XSETREF(*method, found);
    return true;
}

/* Learn torch's classes and the helpers that stay Python; without a valid exchange interface all
 * tensors go through Python. */
bool tensors_configure(PyObject *tensor, PyObject *parameter, PyObject *exchange_api,
                       PyObject *count_modes, PyObject *view_of_tensor, PyObject *samples) {
    if (!PyTuple_Check(samples) || PyTuple_GET_SIZE(samples) > MAX_DTYPES) {
        PyErr_Format(PyExc_TypeError, "expected a tuple of at most %d samples", MAX_DTYPES);
        return false;
    }
    if (!PyType_Check(tensor) || !PyType_Check(parameter)) {
        PyErr_SetString(PyExc_TypeError, "expected the classes Tensor and Parameter");
        return false;
    }
    if (!find_method(tensor, "untyped_storage", &untyped_storage) ||
        !find_method(tensor, "storage_offset", &storage_offset) ||
        !find_method(tensor, "is_neg", &is_neg) || !find_method(tensor, "is_conj", &is_conj)) {
        return false;
    }
    Py_XSETREF(tensor_type, (PyTypeObject *)Py_NewRef(tensor));
    Py_XSETREF(parameter_type, (PyTypeObject *)Py_NewRef(parameter));
    Py_XSETREF(mode_count, Py_NewRef(count_modes));
    Py_XSETREF(view_of, Py_NewRef(view_of_tensor));
    bool can_count = PyCFunction_CheckExact(mode_count) &&
                     (PyCFunction_GET_FLAGS(mode_count) & METH_NOARGS);
    exchange = can_count ? find_exchange(exchange_api) : NULL;
    memset(decodable, 0, sizeof decodable);
    if (exchange != NULL) {
        learn_dtypes(samples);
        try_dtypes();
    }
    return true;
}
