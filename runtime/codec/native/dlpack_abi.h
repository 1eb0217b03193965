/* The part of DLPack's binary interface (version 1) that the codec uses: how torch describes a
 * tensor's memory to C, https://dmlc.github.io/dlpack/latest/c_api.html.
 */
#ifndef MSGEN_DLPACK_ABI_H
#define MSGEN_DLPACK_ABI_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 1, DEVICE_CPU = 1 };

typedef struct {
    uint32_t major, minor;
} DlVersion;

typedef struct {
    int32_t type, id;
} DlDevice;

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DlDtype;

typedef struct {
    void *data;
    DlDevice device;
    int32_t rank;
    DlDtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL for C order */
    uint64_t byte_offset;
} DlTensor;

typedef struct DlManaged DlManaged;
struct DlManaged {
    DlVersion version;
    void *context;
    void (*deleter)(DlManaged *self);
    uint64_t flags;
    DlTensor tensor;
};

/* What the capsule `torch.Tensor.__dlpack_c_exchange_api__` points at. */
typedef struct {
    DlVersion version;
    void *older;
    int (*allocate)(DlTensor *, DlManaged **, void *, void (*)(void *, const char *, const char *));
    int (*export_owned)(void *object, DlManaged **out);
    int (*import_owned)(DlManaged *managed, void **out);
    int (*describe)(void *object, DlTensor *out);
    int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
} DlExchange;

#endif
