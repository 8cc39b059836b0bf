/* The first byte chooses: a model, read from memory and from a file, which is written and read
 * again when it is valid; or a single tensor. The rest of the input holds its bytes. */
#include "fuzz.h"

#include <pumice/onnx.h>

static void use(bool wrong)
{
    if (wrong)
        abort();
}

static void read_tensor(const struct pm_onnx_tensor *t)
{
    float floats[64];
    int64_t ints[64];
    const size_t n = t->count < 64 ? (size_t)t->count : 64;

    if (t->type == PM_DTYPE_OTHER)
        return;
    use(pm_onnx_floats(t, t->count - n, n, floats) < 0);
    use(pm_onnx_ints(t, 0, n, ints) < 0);
}

static size_t read_texts(const struct pm_onnx_model *m)
{
    size_t length = strlen(m->graph_name) + strlen(m->doc) + strlen(m->producer);

    for (size_t i = 0; i < m->node_count; i++) {
        const struct pm_onnx_node *n = &m->nodes[i];
        length += strlen(n->op) + strlen(n->name) + strlen(n->domain);
        for (int k = 0; k < n->in_count; k++)
            length += strlen(n->in[k]);
        for (int k = 0; k < n->out_count; k++)
            length += strlen(n->out[k]);
        for (int k = 0; k < n->attr_count; k++) {
            const struct pm_onnx_attr *a = &n->attrs[k];
            length += strlen(a->name) + (a->type == PM_ONNX_STRING ? strlen(a->s) : 0);
            if (a->type == PM_ONNX_TENSOR)
                read_tensor(a->t);
            for (int j = 0; j < a->count; j++)
                length += a->type == PM_ONNX_STRINGS ? strlen(a->strings[j])
                          : a->type == PM_ONNX_INTS  ? (size_t)a->ints[j]
                                                     : a->floats[j] > 0;
        }
    }
    for (size_t i = 0; i < 2 * m->meta_count; i++)
        length += strlen(m->meta[i]);
    return length;
}

static void write_and_read(const struct pm_onnx_model *m, bool beside)
{
    struct pm_onnx_model *back = NULL;
    const char *path = fuzz_path("written.onnx");

    if (pm_onnx_write(m, path, beside, NULL) < 0)
        return; /* holds a kind that is not written */
    use(pm_onnx_read(path, &back) < 0);
    use(back->node_count != m->node_count || back->tensor_count != m->tensor_count ||
        back->input_count != m->input_count || back->output_count != m->output_count ||
        back->meta_count != m->meta_count || read_texts(back) != read_texts(m));
    for (size_t i = 0; i < m->tensor_count; i++)
        use(back->tensors[i].count != m->tensors[i].count);
    pm_onnx_close(&back);
}

static void model(const uint8_t *data, size_t size, bool beside)
{
    struct pm_onnx_model *m = NULL, *same = NULL;
    const char *path = fuzz_path("model.onnx");
    const int err = pm_onnx_read_memory("fuzz", data, size, &m);

    use(pm_file_write(path, data, size) < 0);
    /* External data is refused in memory; from a file it may lie in the model file itself. */
    use(pm_onnx_read(path, &same) < 0 && err == PM_OK);
    if (m) {
        use(read_texts(m) != read_texts(same));
        for (size_t i = 0; i < m->tensor_count; i++)
            read_tensor(&m->tensors[i]);
        write_and_read(m, beside);
    }
    pm_onnx_close(&m);
    pm_onnx_close(&same);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_begin();
    if (size < 1)
        return 0;
    if (data[0] & 1) {
        model(data + 1, size - 1, data[0] & 2);
        return 0;
    }
    struct pm_arena *a = pm_arena_create();
    struct pm_onnx_tensor t;
    const char *path = fuzz_path("tensor.pb");
    use(pm_file_write(path, data + 1, size - 1) < 0);
    if (pm_onnx_read_tensor(path, a, &t) == PM_OK)
        read_tensor(&t);
    pm_arena_destroy(&a);
    return 0;
}
