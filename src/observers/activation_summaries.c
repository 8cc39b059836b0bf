/* activation_summaries: activation_summaries.h has the contract. */
#include "observers/activation_summaries.h"

#include <string.h>

struct pm_activations {
    struct pm_net *net;
    struct pm_plan *plan;
    const char **names; /* of the nodes whose values are copied out; NULL-terminated */
    struct pm_named_floats *list;
    size_t bytes;       /* of the pictures */
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

/* Clears the other inputs, the labels: only the loss reads them. */
static void clear_inputs(struct pm_activations *a, const struct pm_experiment *e, int batch)
{
    const struct pm_field_list *fields = &e->train_fields;

    a->bytes = (size_t)batch * pm_shape_count(fields->list[0].shape) * sizeof(float);
    for (int i = 1; i < fields->count; i++) {
        const struct pm_field *f = &fields->list[i];

        memset(pm_plan_input(a->plan, 0, f->name, 0), 0,
               (size_t)batch * pm_shape_count(f->shape) * pm_type_size(f->type));
    }
}

int pm_activations_create(struct pm_experiment *e, int batch, bool heads, struct pm_device *d,
                          struct pm_variables *v, struct pm_activations **out)
{
    struct pm_activations *a = pm_calloc(1, sizeof *a);
    struct pm_outputs outputs;
    int n = 0, err = PM_OK;

    PM_TRY(pm_experiment_net(e, (struct pm_net_want){ PM_USE_TRAIN, batch, 0, 0 }, &a->net,
                             &outputs));
    a->names = pm_calloc((size_t)a->net->count + 1, sizeof *a->names);
    a->list = pm_calloc((size_t)a->net->count + 1, sizeof *a->list);
    for (int i = 0; i < outputs.count && heads; i++)
        a->names[n++] = outputs.node[i];
    for (int i = 0; i < a->net->count && !heads; i++)
        if (is_end_point(a->net, a->net->nodes[i]))
            a->names[n++] = a->net->nodes[i]->name;
    PM_TRY(pm_plan_create(a->net, d, v, &(struct pm_plan_options){
        .name = "activations", .outputs = a->names, .slots = 1, .loss_share = 1 }, &a->plan));
    PM_TRY(pm_plan_load(a->plan));
    clear_inputs(a, e, batch);
    *out = a, a = NULL;
out:
    pm_activations_destroy(&a);
    return err;
}

void pm_activations_destroy(struct pm_activations **a)
{
    if (!*a)
        return;
    pm_plan_destroy(&(*a)->plan);
    pm_net_destroy(&(*a)->net);
    pm_free((*a)->names);
    pm_free((*a)->list);
    pm_free(*a);
    *a = NULL;
}

int pm_activations_run(struct pm_activations *a, const float *pictures,
                       const struct pm_named_floats **list, int *count)
{
    int n = 0, err = PM_OK;

    memcpy(pm_plan_input(a->plan, 0, "images", 0), pictures, a->bytes);
    PM_TRY(pm_plan_submit(a->plan, 0));
    PM_TRY(pm_plan_wait(a->plan, 0));
    for (int i = 0; a->names[i]; i++) {
        const float *v = pm_plan_output(a->plan, 0, a->names[i], 0);
        const struct pm_shape shape = pm_net_find(a->net, a->names[i])->out_shape;

        if (v) /* NULL: the node passes its input's values through, as dropout does here */
            a->list[n++] = (struct pm_named_floats){ a->names[i], v, pm_shape_count(shape), shape };
    }
    *list = a->list;
    *count = n;
out:
    return err;
}
