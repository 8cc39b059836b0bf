/* activation_summaries: activation_summaries.h has the contract. */
#include "observers/activation_summaries.h"

#include "net/sizes.h"

#include <string.h>

struct pm_activations {
    struct pm_experiment *e; /* borrowed, as are the device and the variables */
    struct pm_device *device;
    struct pm_variables *variables;
    int batch;
    bool heads;
    struct pm_sizes *sizes;  /* owned: a net and its plan per frame */
    const char **names; /* of the nodes whose values are copied out; NULL-terminated */
    struct pm_named_floats *list;
};

/* Whether a batch norm follows the layer. Then the batch norm's output is the activation. */
static bool is_before_batch_norm(const struct pm_net *net, const struct pm_node *n)
{
    for (int i = n->index + 1; i < net->count; i++)
        for (int k = 0; k < net->nodes[i]->inputs; k++)
            if (net->nodes[i]->in[k] == n && strcmp(net->nodes[i]->layer->name, "batch_norm") == 0)
                return true;
    return false;
}

static bool is_end_point(const struct pm_net *net, const struct pm_node *n)
{
    return n->layer->forward && !n->layer->view && !n->layer->loss && n->out_type == PM_F32 &&
           !is_before_batch_norm(net, n);
}

int pm_activations_observed(struct pm_experiment *e, const char *const **out)
{
    const struct pm_frame f = e->frames[0];
    const char *every = pm_experiment_train_output(e).node;
    struct pm_net *net = NULL;
    const char **names;
    int n = 0, err = PM_OK;

    PM_TRY(pm_experiment_net(e, (struct pm_net_want){ PM_USE_TRAIN, 1, f.height, f.width }, &net,
                             NULL));
    names = pm_arena_alloc(e->arena, ((size_t)net->count + 2) * sizeof *names);
    for (int i = 0; i < net->count; i++)
        if (is_end_point(net, net->nodes[i]))
            names[n++] = pm_arena_strdup(e->arena, net->nodes[i]->name);
    if (every)
        names[n++] = every;
    names[n] = NULL;
    *out = names;
out:
    pm_net_destroy(&net);
    return err;
}

/* Lists the nodes whose values are copied out. They have the same names in every frame. */
static void name_nodes(struct pm_activations *a, const struct pm_net *net,
                       const struct pm_outputs *outputs)
{
    int n = 0;

    a->names = pm_calloc((size_t)net->count + 1, sizeof *a->names);
    a->list = pm_calloc((size_t)net->count + 1, sizeof *a->list);
    for (int i = 0; i < outputs->count && a->heads; i++)
        a->names[n++] = outputs->node[i];
    for (int i = 0; i < net->count && !a->heads; i++)
        if (is_end_point(net, net->nodes[i]))
            a->names[n++] = net->nodes[i]->name;
}

/* pm_sizes_options.make */
static int make_plan(void *ctx, int height, int width, struct pm_shared_memory *shared,
                     struct pm_sized *out)
{
    struct pm_activations *a = ctx;
    struct pm_outputs outputs;
    int err = PM_OK;

    PM_TRY(pm_experiment_net(a->e, (struct pm_net_want){ PM_USE_TRAIN, a->batch, height, width },
                             &out->net, &outputs));
    if (!a->names)
        name_nodes(a, out->net, &outputs);
    PM_TRY(pm_plan_create(out->net, a->device, a->variables, &(struct pm_plan_options){
        .name = "activations", .outputs = a->names, .slots = 1, .loss_share = 1,
        .shared = shared }, &out->plan));
out:
    if (err < 0)
        pm_net_destroy(&out->net);
    return err;
}

static void release_net(void *ctx, struct pm_net *net)
{
    (void)ctx;
    pm_net_destroy(&net);
}

int pm_activations_create(struct pm_experiment *e, struct pm_frame frame, int batch, bool heads,
                          struct pm_device *d, struct pm_variables *v,
                          struct pm_activations **out)
{
    struct pm_activations *a = pm_calloc(1, sizeof *a);
    struct pm_sized now;
    int err = PM_OK;

    *a = (struct pm_activations){ .e = e, .device = d, .variables = v, .batch = batch,
                                  .heads = heads };
    a->sizes = pm_sizes_create(&(struct pm_sizes_options){
        .device = d, .keep = e->frames_count, .make = make_plan, .release = release_net,
        .ctx = a });
    PM_TRY(pm_sizes_get(a->sizes, frame.height, frame.width, &now));
    *out = a, a = NULL;
out:
    pm_activations_destroy(&a);
    return err;
}

void pm_activations_destroy(struct pm_activations **a)
{
    if (!*a)
        return;
    pm_sizes_destroy(&(*a)->sizes);
    pm_free((*a)->names);
    pm_free((*a)->list);
    pm_free(*a);
    *a = NULL;
}

static void fill_inputs(const struct pm_activations *a, const struct pm_sized *now,
                        const char *const *values)
{
    const struct pm_field_list *fields = &a->e->train_fields;

    for (int i = 0; i < fields->count; i++) {
        const char *name = fields->list[i].name;
        const struct pm_node *n = pm_net_find(now->net, name);
        const size_t bytes = pm_shape_count(n->out_shape) * pm_type_size(n->out_type);

        memcpy(pm_plan_input(now->plan, 0, name, 0), values[i], bytes);
    }
}

int pm_activations_run(struct pm_activations *a, struct pm_frame frame, const char *const *values,
                       const struct pm_named_floats **list, int *count)
{
    struct pm_sized now;
    int n = 0, err = PM_OK;

    PM_TRY(pm_sizes_get(a->sizes, frame.height, frame.width, &now));
    fill_inputs(a, &now, values);
    PM_TRY(pm_plan_submit(now.plan, 0));
    PM_TRY(pm_plan_wait(now.plan, 0));
    for (int i = 0; a->names[i]; i++) {
        const float *v = pm_plan_output(now.plan, 0, a->names[i], 0);
        const struct pm_shape shape = pm_net_find(now.net, a->names[i])->out_shape;

        if (v) /* NULL: the node passes its input's values through, as dropout does here */
            a->list[n++] = (struct pm_named_floats){ a->names[i], v, pm_shape_count(shape), shape };
    }
    *list = a->list;
    *count = n;
out:
    return err;
}
