/* Reads a model file and builds a net from it: a classifier of images when the first byte is
 * odd, otherwise a graph with the inputs that it names. */
#include "fuzz.h"

#include <pumice/import.h>

enum { MOST_INPUTS = 4 };

static void classifier(struct pm_import *import, struct pm_net *net)
{
    struct pm_import_facts facts;
    struct pm_import_options options = { .new_head = 3 };
    struct pm_heads heads = { 0 };
    struct pm_shape shape = { 4, { 2, 8, 8, 3 } };

    if (pm_import_facts(import, &facts) < 0)
        return;
    if (facts.channels > 0 && facts.channels <= 16)
        shape.dim[3] = facts.channels;
    struct pm_node *images = pm_net_input(net, "images", shape, PM_F32);
    if (pm_import_net(import, net, images, &options, &heads) == PM_OK && !pm_heads_main(&heads))
        abort();
}

static void graph(struct pm_import *import, struct pm_net *net)
{
    const struct pm_onnx_model *m = pm_import_model(import);
    struct pm_import_options options = { .whole = true };
    struct pm_node *inputs[MOST_INPUTS], *out = NULL;

    if (m->input_count > MOST_INPUTS)
        return;
    for (size_t i = 0; i < m->input_count; i++) {
        struct pm_shape shape = { .rank = m->inputs[i].rank < 1 ? 1 : m->inputs[i].rank };
        char name[16];
        if (shape.rank > PM_MAX_RANK)
            return;
        for (int k = 0; k < shape.rank; k++) {
            const int64_t dim = m->inputs[i].rank < 1 ? 1 : m->inputs[i].dim[k];
            if (dim < 1 || dim > 16) /* the caller takes its shape from the model */
                return;
            shape.dim[k] = (int)dim;
        }
        snprintf(name, sizeof name, "input%zu", i);
        inputs[i] = pm_net_input(net, name, shape, PM_F32);
    }
    if (pm_import_graph(import, net, inputs, &options, &out) == PM_OK && !out)
        abort();
}

/* Reads the values of the variables in two parts. */
static void read_values(const struct pm_net *net)
{
    size_t seen = 0;

    for (int i = 0; i < net->var_count; i++) {
        const struct pm_variable *v = net->vars[i];
        const size_t count = pm_shape_count(v->shape), half = count / 2;
        if (v->init.kind != PM_INIT_GIVEN || count > 1 << 16)
            continue;
        float *values = pm_malloc(count * sizeof *values);
        if (v->init.read(v->init.from, 0, half, values) == PM_OK &&
            v->init.read(v->init.from, half, count - half, values + half) == PM_OK)
            for (size_t k = 0; k < count; k++)
                seen += values[k] != 0;
        pm_free(values);
    }
    (void)seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pm_onnx_model *m = NULL;
    struct pm_import *import = NULL;

    pm_log_set_level(PM_LEVEL_ERROR);
    if (size < 1 || pm_onnx_read_memory("fuzz", data + 1, size - 1, &m) < 0)
        return 0;
    if (pm_import_open_model(m, &import) == PM_OK) {
        struct pm_net *net = pm_net_create();
        data[0] & 1 ? classifier(import, net) : graph(import, net);
        if (!net->error)
            read_values(net);
        pm_net_destroy(&net);
    }
    pm_import_close(&import);
    return 0;
}
