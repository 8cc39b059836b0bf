/* export_try: both nets are planned on the CPU, one after the other. Only one set of weights is in
 * memory at a time beside the file. */
#include "jobs/export_try.h"

#include <pumice/import.h>
#include <pumice/plan.h>
#include <pumice/rng.h>

#include <math.h>
#include <string.h>

/* Both sides add up 32-bit floats in the same order, except where the graph orders them
 * differently. */
static const double bound = 1e-4;

static int open_cpu(struct pm_device **out)
{
    struct pm_device_info *list = NULL;
    size_t count, index;
    int err = PM_OK;

    PM_TRY(pm_device_list(&list, &count));
    PM_TRY(pm_device_find(list, count, "cpu", "export", &index));
    PM_TRY(pm_device_open(&list[index], &(struct pm_device_options){ .hang_seconds = INFINITY },
                          out));
out:
    pm_free(list);
    return err;
}

/* Computes the net's output for the pictures; the caller frees out. values: of the checkpoint, or
 * NULL for the file's own values, or initial values from seed. */
static int answer(struct pm_device *d, struct pm_net *net, const char *logits,
                  const struct pm_match *values, uint64_t seed, size_t *count, float **out)
{
    const struct pm_node *input = net->nodes[0];
    const char *const outputs[] = { logits, NULL };
    struct pm_rng r = pm_rng_make(1, pm_hash("export"), 0, 0);
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;
    float *images;
    int err = PM_OK;

    PM_TRY(pm_variables_create(d, net, false, NULL, &v));
    PM_TRY(pm_variables_allocate(v));
    PM_TRY(values ? pm_match_write(values, v) : pm_variables_init(v, seed, NULL));
    PM_TRY(pm_plan_create(net, d, v, &(struct pm_plan_options){
        .name = "export", .outputs = outputs, .slots = 1, .loss_share = 1 }, &plan));
    PM_TRY(pm_plan_load(plan));
    images = pm_plan_input(plan, 0, input->name, 0);
    for (size_t i = 0; i < pm_shape_count(input->out_shape); i++)
        images[i] = (float)(2 * pm_rng_uniform(&r) - 1);
    PM_TRY(pm_plan_submit(plan, 0));
    PM_TRY(pm_plan_wait(plan, 0));
    *count = pm_shape_count(pm_net_find(net, logits)->out_shape);
    *out = pm_malloc(*count * sizeof **out);
    memcpy(*out, pm_plan_output(plan, 0, logits, 0), *count * sizeof **out);
out:
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    return err;
}

static void softmax(float *x, int rows, size_t classes)
{
    for (int i = 0; i < rows; i++, x += classes) {
        double most = (double)x[0], sum = 0;

        for (size_t k = 1; k < classes; k++)
            most = fmax(most, (double)x[k]);
        for (size_t k = 0; k < classes; k++)
            sum += exp((double)x[k] - most);
        for (size_t k = 0; k < classes; k++)
            x[k] = (float)(exp((double)x[k] - most) / sum);
    }
}

static double distance(const float *a, const float *b, size_t count)
{
    double most = 0, off = 0;

    for (size_t i = 0; i < count; i++) {
        off = fmax(off, fabs((double)a[i] - (double)b[i]));
        most = fmax(most, fabs((double)a[i]));
        if (!isfinite(b[i]))
            return INFINITY;
    }
    return most > 0 ? off / most : off;
}

/* What is compared: the outputs of this node, or what leads to it. */
struct trial {
    const char *file, *name;
    struct pm_net *net;
    const struct pm_export_options *o;
    const struct pm_match *values;
    uint64_t seed;
};

static int check_finite(const struct trial *t, const float *a, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(a[i]))
            return pm_fail(
                PM_EFAIL,
                "%s: the net's own output for a sample is not finite, so it cannot be compared "
                "with the model's. The file was not written. Check the training of this checkpoint",
                t->name);
    return PM_OK;
}

/* Compares the value of a node with the model's value of the same name. *difference stays
 * unchanged if the import does not know an operator that leads to it, else it becomes at least the
 * value's. */
static int compare(const struct trial *t, struct pm_device *device, const char *value,
                   double *difference)
{
    const struct pm_shape shape = t->net->nodes[0]->out_shape;
    const struct pm_import_options whole = { .whole = true, .any_shape = t->o->also_count > 0,
                                             .logits = t->o->also_count ? value : NULL };
    struct pm_import *import = NULL;
    struct pm_net *read = pm_net_create();
    struct pm_node *images = pm_net_input(read, "images", shape, PM_F32);
    struct pm_heads heads = { 0 };
    float *a = NULL, *b = NULL;
    size_t count = 0, again = 0;
    double off;
    int err = PM_OK;

    PM_TRY(pm_import_open(t->file, &import));
    err = pm_import_net(import, read, images, &whole, &heads);
    if (err == PM_ECONFIG) {
        PM_INFO("export", "the exported model was not compared with the net: %s", pm_error_text());
        err = PM_OK;
        goto out;
    }
    PM_TRY(err);
    PM_TRY(answer(device, t->net, value, t->values, t->seed, &count, &a));
    PM_TRY(answer(device, read, pm_heads_main(&heads)->name, NULL, t->seed, &again, &b));
    if (t->o->probabilities && !t->o->also_count)
        softmax(a, shape.dim[0], count / (size_t)shape.dim[0]);
    PM_TRY(check_finite(t, a, count));
    off = count == again ? distance(a, b, count) : INFINITY;
    *difference = isnan(*difference) || off > *difference ? off : *difference;
out:
    pm_free(a);
    pm_free(b);
    pm_net_destroy(&read);
    pm_import_close(&import);
    return err;
}

/* Stores the nodes to compare for this output and returns their number. Suppression jumps from one
 * box to another at the smallest difference, and the import does not know it. So its inputs are
 * compared, all boxes and scores. */
static int compared(const struct pm_net *net, const char *output, const char *out[2])
{
    const struct pm_node *n = pm_net_find(net, output);

    if (strcmp(n->layer->name, "suppress") != 0) {
        out[0] = output;
        return 1;
    }
    for (int k = 0; k < 2; k++)
        out[k] = n->in[k]->name;
    return 2;
}

int pm_export_try(const char *file, const char *name, struct pm_net *net, const char *logits,
                  const struct pm_export_options *o, const struct pm_match *values,
                  uint64_t seed, double *difference)
{
    const struct trial t = { file, name, net, o, values, seed };
    struct pm_device *device = NULL;
    const char *value[2];
    const int count = compared(net, logits, value);
    int err = PM_OK;

    *difference = NAN;
    PM_TRY(open_cpu(&device));
    for (int k = 0; k < count; k++)
        PM_TRY(compare(&t, device, value[k], difference));
    if (*difference > bound)
        PM_TRY(pm_fail(PM_EFAIL,
                       "%s: the exported model's output for a sample differs from the net's by "
                       "%.1e of the largest value; at most %.1e is allowed. The file was not "
                       "written. The export of one of the net's layers is wrong: report it with "
                       "the config. eval and predict are not affected",
                       name, *difference, bound));
out:
    pm_device_close(&device);
    return err;
}
