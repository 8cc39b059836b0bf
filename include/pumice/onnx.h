/* onnx: a model file in memory: a graph of operator calls, tensors, notes. Reading and writing know
 * nothing of layers; src/onnx/ turns graphs into nets and nets into graphs.
 *
 * Everything lives in the model's arena but the large tensors' bytes: a model that was read keeps its
 * file open and reads them from there when they are asked for, one that is written points at the
 * caller's memory or asks for them then. The file is read, not mapped: one cut short by another
 * process is an error and not a SIGBUS, and what was looked at takes no memory. Layout is ONNX's:
 * images [n, c, h, w], convolutions' weights [out, in, h, w]. */
#ifndef PUMICE_ONNX_H
#define PUMICE_ONNX_H

#include <pumice/tensor_file.h>

#ifdef __cplusplus
extern "C" {
#endif

enum pm_onnx_type { PM_ONNX_FLOAT = 1, PM_ONNX_INT, PM_ONNX_STRING, PM_ONNX_TENSOR, PM_ONNX_GRAPH,
                    PM_ONNX_FLOATS, PM_ONNX_INTS, PM_ONNX_STRINGS, PM_ONNX_OTHER };

/* data: all elements little-endian, row-major, at any alignment; NULL: fill gives them. A model from a
 * file has data where they take up to PM_ONNX_SMALL bytes. pm_onnx_bytes, _floats and _ints do both. */
enum { PM_ONNX_SMALL = 4096 };
struct pm_onnx_tensor {
    const char *name;
    enum pm_dtype type;
    int rank;
    int64_t dim[PM_FILE_MAX_RANK];
    uint64_t count, bytes;
    const void *data;
    /* Bytes begin..begin+size-1 into dst; PM_OK or an error, which ends writing. */
    int (*fill)(const struct pm_onnx_tensor *t, uint64_t begin, size_t size, void *dst);
    const void *fill_from; /* fill's own */
    const char *beside;    /* read: the file of its external data; NULL: the model's own */
};
struct pm_onnx_attr {
    const char *name;
    enum pm_onnx_type type;
    float f;
    int64_t i;
    const char *s;                   /* also the text of a STRING; 0-ended copy */
    const struct pm_onnx_tensor *t;
    int count;                       /* of the lists */
    const float *floats;
    const int64_t *ints;
    const char *const *strings;
};
struct pm_onnx_node {
    const char *op, *domain, *name;  /* domain "" is ONNX's own; name may be "" */
    const char **in, **out;          /* "" = an optional one that is absent */
    int in_count, out_count;
    struct pm_onnx_attr *attrs;
    int attr_count;
};
/* A graph's input or output. */
struct pm_onnx_value {
    const char *name;
    enum pm_dtype type;
    int rank;                        /* -1: unknown */
    int64_t dim[PM_FILE_MAX_RANK];   /* -1: unknown or named */
    const char *dim_name[PM_FILE_MAX_RANK]; /* "N", or NULL */
};
struct pm_onnx_model {
    struct pm_arena *arena;          /* owned */
    const char *path;                /* for messages */
    int64_t ir_version, opset;       /* opset of ONNX's own domain */
    struct pm_onnx_domain {          /* the others it names, and their versions */
        const char *name;
        int64_t version;
    } *domains;
    size_t domain_count;
    const char **functions;          /* the model's own, "domain.name": not read any further */
    size_t function_count;
    const char *producer, *graph_name, *doc;
    struct pm_onnx_node *nodes;      /* topological order, as ONNX wants */
    size_t node_count, node_capacity; /* the lists here are freed by pm_onnx_close */
    struct pm_onnx_tensor *tensors;  /* initializers */
    size_t tensor_count, tensor_capacity;
    struct pm_onnx_value *inputs, *outputs; /* inputs: without those that are initializers */
    size_t input_count, output_count;
    const char **meta;               /* metadata_props: key, value, ... */
    size_t meta_count;               /* pairs */
    struct pm_onnx_own *own;         /* the reader's files */
};

/* ---- reading ----------------------------------------------------------------------------- */

/* PM_EDATA naming file and offset when it is no ONNX model or is damaged: every length is checked
 * against the file's size, every tensor's bytes against its shape; nothing is allocated for what a
 * length merely claims. External data is looked for beside the file, never outside its folder. Value
 * infos, doc strings of nodes and training information are passed over. */
int pm_onnx_read(const char *path, struct pm_onnx_model **out);
/* From memory, borrowed until close; external data is refused. */
int pm_onnx_read_memory(const char *name, const void *data, size_t size, struct pm_onnx_model **out);
/* A TensorProto by itself (input_0.pb of ONNX's test cases), in the arena. */
int pm_onnx_read_tensor(const char *path, struct pm_arena *a, struct pm_onnx_tensor *out);
void pm_onnx_close(struct pm_onnx_model **m);

const struct pm_onnx_attr *pm_onnx_attr(const struct pm_onnx_node *n, const char *name); /* or NULL */
int64_t pm_onnx_attr_int(const struct pm_onnx_node *n, const char *name, int64_t otherwise);
float pm_onnx_attr_float(const struct pm_onnx_node *n, const char *name, float otherwise);
const char *pm_onnx_attr_text(const struct pm_onnx_node *n, const char *name, const char *otherwise);
const struct pm_onnx_tensor *pm_onnx_tensor_find(const struct pm_onnx_model *m, const char *name);
const char *pm_onnx_meta(const struct pm_onnx_model *m, const char *key); /* or NULL */
/* Bytes begin..begin+size-1, elements first..first+count-1 as numbers. PM_EDATA when they cannot be
 * read, lie beyond the end, or are no numbers (PM_DTYPE_OTHER: strings, float8, int4). Integers of
 * other types saturate. */
int pm_onnx_bytes(const struct pm_onnx_tensor *t, uint64_t begin, size_t size, void *dst);
int pm_onnx_floats(const struct pm_onnx_tensor *t, uint64_t first, size_t count, float *dst);
int pm_onnx_ints(const struct pm_onnx_tensor *t, uint64_t first, size_t count, int64_t *dst);

/* ---- making ------------------------------------------------------------------------------ */

struct pm_onnx_model *pm_onnx_make(const char *graph_name);
/* A node with its inputs and outputs, NULL-ended lists of names. Good until the next one. */
struct pm_onnx_node *pm_onnx_add(struct pm_onnx_model *m, const char *op, const char *name,
                                 const char *const *in, const char *const *out);
void pm_onnx_set_int(struct pm_onnx_model *m, struct pm_onnx_node *n, const char *name, int64_t v);
void pm_onnx_set_float(struct pm_onnx_model *m, struct pm_onnx_node *n, const char *name, float v);
void pm_onnx_set_text(struct pm_onnx_model *m, struct pm_onnx_node *n, const char *name,
                      const char *v);
void pm_onnx_set_ints(struct pm_onnx_model *m, struct pm_onnx_node *n, const char *name, int count,
                      const int64_t *v);
/* An initializer; data is borrowed until the model is closed, or NULL when fill will be set. */
struct pm_onnx_tensor *pm_onnx_add_tensor(struct pm_onnx_model *m, const char *name,
                                          enum pm_dtype type, int rank, const int64_t *dim,
                                          const void *data);
/* dim -1 with dim_name. */
struct pm_onnx_value *pm_onnx_add_input(struct pm_onnx_model *m, const char *name,
                                        enum pm_dtype type, int rank, const int64_t *dim);
struct pm_onnx_value *pm_onnx_add_output(struct pm_onnx_model *m, const char *name,
                                         enum pm_dtype type, int rank, const int64_t *dim);
void pm_onnx_add_meta(struct pm_onnx_model *m, const char *key, const char *value);
/* Whole or not at all, as pm_safetensors_write; equal models give equal bytes. beside: tensors above
 * PM_ONNX_BESIDE bytes go to PATH-DIGEST.data, where DIGEST is the first 12 hex digits of its sha256;
 * the model names it. A kill leaves the former model with its data or the new one with its own. Data
 * files of former models of ours at path are removed at the end. Without beside more than 2 GB -
 * 64 KiB is PM_ECONFIG, as no reader takes a larger message.
 * data (or NULL): gets the data file's path, NULL where there is none; freed with pm_free. */
enum { PM_ONNX_BESIDE = 1024 };
int pm_onnx_write(const struct pm_onnx_model *m, const char *path, bool beside, char **data);
/* The same. Before anything at path is replaced, check(ctx, file) is called; file is the complete new
 * model under a temporary name in the same folder, with its data file beside it. When check returns an
 * error, the former files stay, the new ones are removed, and the error is returned. */
int pm_onnx_write_checked(const struct pm_onnx_model *m, const char *path, bool beside,
                          int (*check)(void *ctx, const char *file), void *ctx, char **data);

#ifdef __cplusplus
}
#endif

#endif
