/* onnx as a tensor file: the initializers, in ONNX's layout. */
#include <string.h>

#include <pumice/onnx.h>

#include "formats/tensor_format.h"

/* Protobuf files have no magic number. A model is recognised by its file name, or by its first two
 * fields: the IR version (3..31) and another field of ModelProto. TensorFlow's SavedModel begins
 * the same way, but with version 1. */
static bool is_onnx(const struct pm_tensor_probe *p)
{
    if (!p->file)
        return false;
    return pm_ends_with(p->path, ".onnx") ||
           (p->head_size > 2 && p->head[0] == 8 && p->head[1] >= 3 && p->head[1] < 32 &&
            (p->head[2] == 0x12 || p->head[2] == 0x1a || p->head[2] == 0x22 || p->head[2] == 0x28 ||
             p->head[2] == 0x32 || p->head[2] == 0x3a || p->head[2] == 0x42));
}

static int read_initializer(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                            uint64_t begin, size_t size, void *dst)
{
    const struct pm_onnx_model *m = f->own;

    return pm_onnx_bytes(&m->tensors[t->offset], begin, size, dst);
}

static void close_model(struct pm_tensor_file *f)
{
    struct pm_onnx_model *m = f->own;

    pm_onnx_close(&m);
}

/* External data files become sources of the tensor file, too. */
static void name_beside(struct pm_tensor_file *f, const struct pm_onnx_model *m)
{
    for (size_t i = 0; i < m->tensor_count; i++) {
        const char *path = m->tensors[i].beside;
        int k = 0;

        while (path && k < f->source_count && strcmp(f->sources[k].path, path) != 0)
            k++;
        if (path && k == f->source_count)
            pm_tensor_file_name(f, path);
    }
}

static int open_onnx(const char *path, struct pm_tensor_file **out);

const struct pm_tensor_format pm_format_onnx = {
    .name = "ONNX",
    .help = "an ONNX model's initializers",
    .is = is_onnx,
    .open = open_onnx,
};

static int open_onnx(const char *path, struct pm_tensor_file **out)
{
    int err = PM_OK;
    struct pm_tensor_file *f = pm_tensor_file_make(path, &pm_format_onnx);
    struct pm_onnx_model *m = NULL;

    PM_TRY(pm_onnx_read(path, &m));
    f->own = m;
    f->close = close_model;
    f->read = read_initializer;
    PM_TRY(pm_tensor_file_source(f, path, NULL));
    name_beside(f, m);
    for (size_t i = 0; i < m->tensor_count; i++) {
        const struct pm_onnx_tensor *given = &m->tensors[i];
        struct pm_file_tensor *t = pm_tensor_file_add(f, given->name);
        t->type = given->type;
        t->rank = given->rank;
        memcpy(t->dim, given->dim, sizeof t->dim);
        t->count = given->count;
        t->bytes = given->bytes;
        t->offset = i;
    }
    for (size_t i = 0; i < m->meta_count; i++)
        pm_tensor_file_add_meta(f, m->meta[2 * i], m->meta[2 * i + 1]);
    PM_TRY(pm_tensor_file_finish(f));
    *out = f, f = NULL;
out:
    pm_tensor_file_close(&f);
    return err;
}
