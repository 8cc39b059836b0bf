/* onnx: an ONNX model in memory: a graph of operators, tensors, metadata. This header does not know
 * layers; src/onnx/ converts graphs to nets and nets to graphs.
 *
 * Everything except the bytes of large tensors is in the model's arena. A model that was read keeps
 * its file open and reads these bytes on request. A model to be written points at the caller's
 * memory, or calls a function for them. The file is not mapped: truncation by another process gives
 * an error instead of SIGBUS. The layout is ONNX's: images [n, c, h, w], convolution weights [out,
 * in, h, w]. */
#ifndef PUMICE_ONNX_H
#define PUMICE_ONNX_H

#include <pumice/tensor_file.h>

#ifdef __cplusplus
extern "C" {
#endif

enum pm_onnx_type { PM_ONNX_FLOAT = 1, PM_ONNX_INT, PM_ONNX_STRING, PM_ONNX_TENSOR, PM_ONNX_GRAPH,
                    PM_ONNX_FLOATS, PM_ONNX_INTS, PM_ONNX_STRINGS, PM_ONNX_OTHER };

/* data: all elements, little-endian, row-major, at any alignment; NULL: fill reads them. In a model
 * from a file, data is set for tensors of up to PM_ONNX_SMALL bytes. pm_onnx_bytes, _floats and
 * _ints handle both cases. */
enum { PM_ONNX_SMALL = 4096 };
struct pm_onnx_tensor {
    const char *name;
    enum pm_dtype type;
    int rank;
    int64_t dim[PM_FILE_MAX_RANK];
    uint64_t count, bytes;
    const void *data;
    /* Writes bytes begin..begin+size-1 to dst. Returns PM_OK, or an error that ends writing. */
    int (*fill)(const struct pm_onnx_tensor *t, uint64_t begin, size_t size, void *dst);
    const void *fill_from; /* context for fill */
    const char *beside;    /* when read: its external data file; NULL: the model's file */
};
struct pm_onnx_attr {
    const char *name;
    enum pm_onnx_type type;
    float f;
    int64_t i;
    const char *s;                   /* also the text of a STRING; 0-ended copy */
    const struct pm_onnx_tensor *t;
    struct pm_onnx_model *g;         /* GRAPH: owned by the model; NULL in one that was read */
    int count;                       /* of the lists */
    const float *floats;
    const int64_t *ints;
    const char *const *strings;
};
struct pm_onnx_node {
    const char *op, *domain, *name;  /* domain "" is ONNX's own; name may be "" */
    const char **in, **out;          /* "" = optional and absent */
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
    struct pm_onnx_domain {          /* other domains and their versions */
        const char *name;
        int64_t version;
    } *domains;
    size_t domain_count;
    const char **functions;      /* the model's functions, "domain.name"; only the names are read */
    size_t function_count;
    const char *producer, *graph_name, *doc;
    struct pm_onnx_node *nodes;      /* in topological order, which ONNX requires */
    size_t node_count, node_capacity; /* pm_onnx_close frees the lists */
    struct pm_onnx_tensor *tensors;  /* initializers */
    size_t tensor_count, tensor_capacity;
    struct pm_onnx_value *inputs, *outputs; /* inputs: without initializers */
    size_t input_count, output_count;
    const char **meta;               /* metadata_props: key, value, ... */
    size_t meta_count;               /* pairs */
    struct pm_onnx_own *own;         /* the reader's files */
};

/* ---- reading ----------------------------------------------------------------------------- */

/* Reads a model. PM_EDATA, with file and offset, if it is not an ONNX model or is damaged: every
 * length is checked against the file's size, every tensor's size against its shape, before memory
 * is allocated. External data are read only from the folder of the file. Value infos, doc strings
 * of nodes and training information are skipped. */
int pm_onnx_read(const char *path, struct pm_onnx_model **out);
/* Reads a model from memory, which is borrowed until close. External data are refused. */
int pm_onnx_read_memory(const char *name, const void *data, size_t size,
                        struct pm_onnx_model **out);
/* Reads a single TensorProto (input_0.pb of ONNX's test cases) into the arena. */
int pm_onnx_read_tensor(const char *path, struct pm_arena *a, struct pm_onnx_tensor *out);
void pm_onnx_close(struct pm_onnx_model **m);

/* or NULL */
const struct pm_onnx_attr *pm_onnx_attr(const struct pm_onnx_node *n, const char *name);
int64_t pm_onnx_attr_int(const struct pm_onnx_node *n, const char *name, int64_t otherwise);
float pm_onnx_attr_float(const struct pm_onnx_node *n, const char *name, float otherwise);
const char *pm_onnx_attr_text(const struct pm_onnx_node *n, const char *name,
                              const char *otherwise);
const struct pm_onnx_tensor *pm_onnx_tensor_find(const struct pm_onnx_model *m, const char *name);
const char *pm_onnx_meta(const struct pm_onnx_model *m, const char *key); /* or NULL */
/* Read bytes begin..begin+size-1, or elements first..first+count-1 as numbers. PM_EDATA if they
 * cannot be read, are outside the tensor, or are not numbers (PM_DTYPE_OTHER: strings, float8,
 * int4). Integers of other types saturate. */
int pm_onnx_bytes(const struct pm_onnx_tensor *t, uint64_t begin, size_t size, void *dst);
int pm_onnx_floats(const struct pm_onnx_tensor *t, uint64_t first, size_t count, float *dst);
int pm_onnx_ints(const struct pm_onnx_tensor *t, uint64_t first, size_t count, int64_t *dst);

/* ---- making ------------------------------------------------------------------------------ */

struct pm_onnx_model *pm_onnx_make(const char *graph_name);
/* Adds a node with its inputs and outputs, NULL-terminated lists of names. Valid until the next
 * call. */
struct pm_onnx_node *pm_onnx_add(struct pm_onnx_model *m, const char *op, const char *name,
                                 const char *const *in, const char *const *out);
void pm_onnx_set_int(struct pm_onnx_model *m, struct pm_onnx_node *n, const char *name, int64_t v);
void pm_onnx_set_float(struct pm_onnx_model *m, struct pm_onnx_node *n, const char *name, float v);
void pm_onnx_set_text(struct pm_onnx_model *m, struct pm_onnx_node *n, const char *name,
                      const char *v);
void pm_onnx_set_ints(struct pm_onnx_model *m, struct pm_onnx_node *n, const char *name, int count,
                      const int64_t *v);
/* Sets an operator's body: the nodes, initializers, inputs and outputs of another model. Takes
 * ownership of that model. */
void pm_onnx_set_graph(struct pm_onnx_model *m, struct pm_onnx_node *n, const char *name,
                       struct pm_onnx_model *body);
/* Adds an initializer. data is borrowed until the model is closed; NULL if the caller sets fill. */
struct pm_onnx_tensor *pm_onnx_add_tensor(struct pm_onnx_model *m, const char *name,
                                          enum pm_dtype type, int rank, const int64_t *dim,
                                          const void *data);
/* dim -1 with dim_name. */
struct pm_onnx_value *pm_onnx_add_input(struct pm_onnx_model *m, const char *name,
                                        enum pm_dtype type, int rank, const int64_t *dim);
struct pm_onnx_value *pm_onnx_add_output(struct pm_onnx_model *m, const char *name,
                                         enum pm_dtype type, int rank, const int64_t *dim);
void pm_onnx_add_meta(struct pm_onnx_model *m, const char *key, const char *value);
/* Writes a model; the file appears complete or not at all, and equal models give equal bytes.
 * beside: tensors larger than PM_ONNX_BESIDE bytes are written to PATH-DIGEST.data (DIGEST: the
 * first 12 hex digits of its sha256), to which the model refers. If the process is killed, either
 * the old model with its data or the new model with its data exists. At the end, data files of old
 * models at path are removed. Without beside, more than 2 GB - 64 KiB is PM_ECONFIG, because no
 * reader accepts a larger message. *data (data may be NULL): path of the data file, or NULL if
 * there is none; free it with pm_free. */
enum { PM_ONNX_BESIDE = 1024 };
int pm_onnx_write(const struct pm_onnx_model *m, const char *path, bool beside, char **data);
/* The same, but calls check(ctx, file) before anything at path is replaced. file is the complete
 * new model under a temporary name in the same folder, with its data file. If check returns an
 * error, the old files stay, the new ones are removed, and the error is returned. */
int pm_onnx_write_checked(const struct pm_onnx_model *m, const char *path, bool beside,
                          int (*check)(void *ctx, const char *file), void *ctx, char **data);

#ifdef __cplusplus
}
#endif

#endif
