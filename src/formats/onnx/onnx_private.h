/* onnx_private: declarations that the ONNX reader and writer share: field numbers of onnx.proto,
 * reading one tensor, and data files beside a model. */
#ifndef PUMICE_FORMATS_ONNX_PRIVATE_H
#define PUMICE_FORMATS_ONNX_PRIVATE_H

#include <pumice/onnx.h>

#include "formats/wire.h"

/* Fields by message. */
enum { MODEL_IR_VERSION = 1, MODEL_PRODUCER = 2, MODEL_DOC = 6, MODEL_GRAPH = 7, MODEL_OPSET = 8,
       MODEL_META = 14, MODEL_FUNCTION = 25 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { FUNCTION_NAME = 1, FUNCTION_DOMAIN = 10 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12,
       GRAPH_SPARSE = 15 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTR = 5,
       NODE_DOMAIN = 7 };
enum { ATTR_NAME = 1, ATTR_F = 2, ATTR_I = 3, ATTR_S = 4, ATTR_T = 5, ATTR_G = 6, ATTR_FLOATS = 7,
       ATTR_INTS = 8, ATTR_STRINGS = 9, ATTR_TYPE = 20, ATTR_REF = 21 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_SEGMENT = 3, TENSOR_FLOATS = 4, TENSOR_INT32S = 5,
       TENSOR_INT64S = 7, TENSOR_NAME = 8, TENSOR_RAW = 9, TENSOR_DOUBLES = 10, TENSOR_UINT64S = 11,
       TENSOR_EXTERNAL = 13, TENSOR_LOCATION = 14 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2 };
enum { TYPE_TENSOR = 1, TYPE_TENSOR_ELEMENT = 1, TYPE_TENSOR_SHAPE = 2, SHAPE_DIM = 1,
       DIM_VALUE = 1, DIM_PARAM = 2 };

/* Convert between PM_DTYPE and TensorProto.DataType. A type without a counterpart gives OTHER
 * (0). */
int pm_onnx_type_number(enum pm_dtype type);
enum pm_dtype pm_onnx_type_of(uint64_t number);

/* An external data file. It stays open as long as the model. */
struct pm_onnx_beside {
    const char *location; /* as written in the model */
    struct pm_wire_file file;
    struct pm_onnx_beside *next;
};
struct pm_onnx_reading {
    struct pm_arena *arena;
    const char *folder; /* the only folder for external data; NULL: external data are refused */
    bool whole;         /* copy all data into the arena, because the files will be closed */
    struct pm_onnx_beside **beside; /* open data files; unused if whole */
};
/* w: a TensorProto. */
int pm_onnx_parse_tensor(const struct pm_onnx_reading *r, struct pm_wire w,
                         struct pm_onnx_tensor *t);

/* The signed number of a VARINT field. A 32-bit field uses the low 32 bits. */
int pm_onnx_int(const struct pm_wire *w, const struct pm_wire_field *f, int64_t *out);
/* A StringStringEntryProto. */
int pm_onnx_entry(const struct pm_wire *w, const struct pm_wire_field *f, struct pm_arena *a,
                  const char **key, const char **value);

/* ---- the data file beside a model (beside.c) ---------------------------------------------- */

/* "PATH-0123456789ab.data", by the first digits of the data's sha256; freed by the caller. */
char *pm_onnx_beside_path(const char *path, const char *sha256);
struct pm_paths {
    const char **list; /* freed with pm_free; its texts are the arena's */
    size_t count, capacity;
};
/* Call before a model is written to path. Lists the data files of the existing model and of exports
 * to path that were killed. Lists only files that an export to path has made. */
void pm_onnx_beside_find(const char *path, struct pm_arena *a, struct pm_paths *out);
/* Call afterwards. Removes the listed files except `except` (may be NULL). A failure is logged as a
 * warning. */
void pm_onnx_beside_remove(const struct pm_paths *old, const char *except);

/* Private state of a model that was read from a file. */
struct pm_onnx_own {
    struct pm_wire_file file;
    struct pm_onnx_beside *beside;        /* in the model's arena */
    const struct pm_onnx_tensor **sorted; /* its tensors by name */
    size_t sorted_count;
};
/* An empty model. */
struct pm_onnx_model *pm_onnx_new(const char *path);
/* Append a zeroed element to the list. */
struct pm_onnx_node *pm_onnx_new_node(struct pm_onnx_model *m);
struct pm_onnx_tensor *pm_onnx_new_tensor(struct pm_onnx_model *m);
struct pm_onnx_value *pm_onnx_new_value(struct pm_onnx_value **list, size_t *count);
/* Sets t->count and t->bytes. Returns false if one exceeds 2^63 - 1. */
bool pm_onnx_measure(struct pm_onnx_tensor *t);

#endif
