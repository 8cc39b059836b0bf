/* export_try: both nets are planned on the CPU, one after the other. Only one set of weights is in
 * memory at a time beside the file.
 *
 * The import does not know all layers that the export writes: suppression, the crops of a second
 * stage, the choice of masks, the sampling of a spatial transformer, and the search of a decoder
 * with attention. A net is cut at these layers. What they read is compared. What they compute is
 * taken from the net, as an input of the parts of the model behind them.
 *
 * Masks that the model pastes are tried with boxes and masks of their own, because the pictures of
 * random numbers rarely show an object. The factors of the product are compared. The import does
 * not know the operator Scan, which multiplies them. */
#include "jobs/export_try.h"
#include "jobs/export_try_masks.h"

#include "layers/anchors.h"

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

/* ---- where the net is cut ----------------------------------------------------------------- */

/* A node of the net and its values for the sample. */
struct known {
    struct pm_node *node;
    const char *value; /* in the model; NULL: pm_export_value */
    float *v;          /* owned; NULL: not computed yet */
};
struct known_list {
    struct known *list;
    size_t count, capacity;
};

static void add_known(struct known_list *l, struct pm_node *node)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->list[i].node == node)
            return;
    PM_GROW(l->list, l->count, l->capacity);
    l->list[l->count++] = (struct known){ .node = node };
}

static void free_known(struct known_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        pm_free(l->list[i].v);
    pm_free(l->list);
}

struct trial {
    const char *file, *name;
    struct pm_net *net;
    const struct pm_export *graph;
    const struct pm_export_options *o;
    const struct pm_match *values;
    uint64_t seed;
    struct pm_device *device;
    struct pm_import *import; /* of the file */
    struct known_list compared, given; /* given: outputs of the layers where the net is cut */
};

/* Suppression also jumps from one box to another at the smallest difference. */
static bool is_cut(const struct pm_node *n)
{
    static const char *const names[] = { "suppress", "crop_and_resize", "sensitive_crops",
                                         "class_masks", "heatmap_points", "decode_keypoints",
                                         "thin_plate_sampler", "attention_search" };

    for (size_t i = 0; i < PM_COUNT(names); i++)
        if (strcmp(n->layer->name, names[i]) == 0)
            return true;
    return false;
}

/* The layer's node of a further output. */
static const struct pm_node *layer_of(const struct pm_node *n)
{
    return n->output ? n->in[0] : n;
}

static bool has_boxes(const struct pm_export_options *o)
{
    return o->places && o->places[0] == PM_PLACES_BOXES;
}

/* Anchors, also clipped ones, follow from the size of the pictures alone: they are constants of the
 * model. */
static bool is_constant(const struct pm_node *n)
{
    return pm_is_anchors(n) || (n->inputs == 1 && is_constant(n->in[0]));
}

/* Whether the net computes the values from the pictures, so that they can be compared. */
static bool is_computed(const struct pm_node *n)
{
    return n->inputs > 0 && n->out_type == PM_F32 && !is_cut(layer_of(n)) && !is_constant(n);
}

/* Lists the values to compare for this output: those that lead to it, and to the masks of
 * detections, where the net is cut. Further outputs that are not a detector's are compared, too. */
static void list_values(struct trial *t, struct pm_node *output)
{
    bool *needed = pm_calloc((size_t)t->net->count, sizeof *needed);

    needed[output->index] = true;
    if (!is_cut(output))
        add_known(&t->compared, output);
    for (int i = 0; i < t->o->also_count; i++) {
        const struct pm_node *n = t->o->also[i];

        needed[n->index] |= is_cut(n);
        if (!has_boxes(t->o) && n->out_type == PM_F32 && !is_cut(n))
            add_known(&t->compared, t->net->nodes[n->index]);
    }
    for (int i = t->net->count - 1; i >= 0; i--) {
        struct pm_node *n = t->net->nodes[i];
        const bool cut = needed[i] && !n->output && is_cut(n);

        for (int k = 0; needed[i] && k < n->inputs; k++) {
            needed[n->in[k]->index] = true;
            if (cut && is_computed(n->in[k]))
                add_known(&t->compared, n->in[k]);
        }
        for (int k = 0; cut && k < n->outputs; k++)
            if (n->out[k]->out_type == PM_F32)
                add_known(&t->given, n->out[k]);
    }
    pm_free(needed);
}

/* ---- computing ---------------------------------------------------------------------------- */

static bool is_read(const struct pm_net *net, const struct pm_node *input)
{
    for (int i = 0; i < net->count; i++)
        for (int k = 0; k < net->nodes[i]->inputs; k++)
            if (net->nodes[i]->in[k] == input)
                return true;
    return false;
}

/* Fills the inputs that a layer reads: those with known values, and pictures of random numbers. */
static void fill_inputs(struct pm_net *net, struct pm_plan *plan, const struct known_list *given)
{
    struct pm_rng r = pm_rng_make(1, pm_hash("export"), 0, 0);

    for (int i = 0; i < net->count; i++) {
        const struct pm_node *input = net->nodes[i];
        const size_t count = pm_shape_count(input->out_shape);
        const float *v = NULL;
        float *to;

        if (input->inputs > 0 || !is_read(net, input))
            continue;
        to = pm_plan_input(plan, 0, input->name, 0);
        for (size_t k = 0; given && k < given->count; k++)
            v = strcmp(given->list[k].node->name, input->name) == 0 ? given->list[k].v : v;
        if (v)
            memcpy(to, v, count * sizeof *v);
        for (size_t k = 0; !v && k < count; k++)
            to[k] = (float)(2 * pm_rng_uniform(&r) - 1);
    }
}

/* Computes outputs of the net, a NULL-terminated list of names; the caller frees them. values: of
 * the checkpoint, or NULL for the file's own values, or initial values from seed. */
static int answer(const struct trial *t, struct pm_net *net, const char *const *names,
                  const struct pm_match *values, const struct known_list *given, float **out)
{
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;
    int err = PM_OK;

    PM_TRY(pm_variables_create(t->device, net, false, NULL, &v));
    PM_TRY(pm_variables_allocate(v));
    PM_TRY(values ? pm_match_write(values, v) : pm_variables_init(v, t->seed, NULL));
    PM_TRY(pm_plan_create(net, t->device, v, &(struct pm_plan_options){
        .name = "export", .outputs = names, .slots = 1, .loss_share = 1 }, &plan));
    PM_TRY(pm_plan_load(plan));
    fill_inputs(net, plan, given);
    PM_TRY(pm_plan_submit(plan, 0));
    PM_TRY(pm_plan_wait(plan, 0));
    for (size_t i = 0; names[i]; i++) {
        const size_t bytes = pm_shape_count(pm_net_find(net, names[i])->out_shape) * sizeof **out;

        out[i] = pm_malloc(bytes);
        memcpy(out[i], pm_plan_output(plan, 0, names[i], 0), bytes);
    }
out:
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    return err;
}

/* Computes the values of all listed nodes of the net. */
static int compute_known(struct trial *t)
{
    struct known_list *const lists[] = { &t->compared, &t->given };
    const size_t count = t->compared.count + t->given.count;
    const char **names = pm_calloc(count + 1, sizeof *names);
    float **v = pm_calloc(count + 1, sizeof *v);
    size_t at = 0;
    int err = PM_OK;

    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->count; i++)
            names[at++] = lists[l]->list[i].node->name;
    err = answer(t, t->net, names, t->values, NULL, v);
    at = 0;
    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->count; i++)
            lists[l]->list[i].v = v[at++];
    pm_free(names);
    pm_free(v);
    return err;
}

/* ---- comparing ---------------------------------------------------------------------------- */

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

/* The model's value that is compared with a node. Boxes as an output may be those of another
 * picture, and have another order of axes than the node. */
static const char *value_of(const struct trial *t, const struct pm_node *n, bool output)
{
    if (!t->o->also_count && output)
        return NULL;
    return output && !has_boxes(t->o) ? n->name : pm_export_value(t->graph, n);
}

/* Adds what leads to a value of the file to the net `read`. Its inputs are the pictures and what
 * the layers compute where the net is cut. */
static int read_part(const struct trial *t, const char *value, struct pm_net *read,
                     struct pm_heads *heads)
{
    struct pm_import_cut *cuts = pm_calloc(t->given.count + 1, sizeof *cuts);
    struct pm_node *images =
        pm_net_input(read, "images", t->net->nodes[0]->out_shape, PM_F32);
    int count = 0;

    if (has_boxes(t->o)) /* the model may make them from other pictures */
        cuts[count++] =
            (struct pm_import_cut){ pm_export_value(t->graph, t->net->nodes[0]), images };
    for (size_t i = 0; i < t->given.count; i++) {
        const struct pm_node *n = t->given.list[i].node;
        const char *of =
            t->given.list[i].value ? t->given.list[i].value : pm_export_value(t->graph, n);

        if (of) /* else the model does not compute it */
            cuts[count++] = (struct pm_import_cut){
                of, pm_net_input(read, n->name, n->out_shape, PM_F32) };
    }
    const int err = pm_import_net(t->import, read, images, &(struct pm_import_options){
        .whole = true, .any_shape = true, .logits = value, .cuts = cuts,
        .cut_count = count }, heads);

    pm_free(cuts);
    return err;
}

/* Compares the values that a part of the file computes with the expected ones. *difference becomes
 * at least theirs. read, heads: from read_part. */
static int compare_part(const struct trial *t, struct pm_net *read, const struct pm_heads *heads,
                        const char *name, const float *expected, size_t count, double *difference)
{
    const struct pm_node *last = pm_heads_main(heads);
    const char *names[] = { last->name, NULL };
    float *v = NULL;
    double off;
    int err = PM_OK;

    PM_TRY(answer(t, read, names, NULL, &t->given, &v));
    off = count == pm_shape_count(last->out_shape) ? distance(expected, v, count) : INFINITY;
    PM_DEBUG("export", "%s: differs by %.1e", name, off);
    *difference = isnan(*difference) ? off : fmax(off, *difference);
out:
    pm_free(v);
    return err;
}

/* Compares the values of a node with the model's. *difference stays unchanged if the import does
 * not know an operator that leads to it. */
static int compare(struct trial *t, struct known *a, bool output, double *difference)
{
    const size_t count = pm_shape_count(a->node->out_shape);
    struct pm_net *read = pm_net_create();
    struct pm_heads heads = { 0 };
    int err = PM_OK;

    err = read_part(t, value_of(t, a->node, output), read, &heads);
    if (err == PM_ECONFIG) {
        PM_INFO("export", "%s of the exported model was not compared with the net's: %s",
                a->node->name, pm_error_text());
        err = PM_OK;
        goto out;
    }
    PM_TRY(err);
    if (!a->v)
        PM_TRY(compute_known(t));
    if (output && t->o->end == PM_END_SOFTMAX && !t->o->also_count) { /* not inputs of a cut */
        const int rows = t->net->nodes[0]->out_shape.dim[0];

        softmax(a->v, rows, count / (size_t)rows);
    }
    PM_TRY(check_finite(t, a->v, count));
    PM_TRY(compare_part(t, read, &heads, a->node->name, a->v, count, difference));
out:
    pm_net_destroy(&read);
    return err;
}

/* ---- pasted masks ------------------------------------------------------------------------- */

static struct pm_node *masks_of(const struct trial *t)
{
    for (int i = 0; i < t->o->also_count; i++)
        if (t->o->places && t->o->places[1 + i] == PM_PLACES_MASKS)
            return pm_net_find(t->net, t->o->also[i]->name);
    return NULL;
}

/* Compares a value of the file that depends on given boxes and masks. t->given: these. */
static int compare_factor(const struct trial *t, const char *value, const float *expected,
                          size_t count, double *difference)
{
    struct pm_net *read = pm_net_create();
    struct pm_heads heads = { 0 };
    int err = PM_OK;

    PM_TRY(read_part(t, value, read, &heads));
    PM_TRY(compare_part(t, read, &heads, value, expected, count, difference));
out:
    pm_net_destroy(&read);
    return err;
}

/* most: the largest difference that is allowed. */
static int check_difference(const struct trial *t, double difference, double most)
{
    if (!(difference > most))
        return PM_OK;
    return pm_fail(PM_EFAIL,
                   "%s: the exported model's output for a sample differs from the net's by "
                   "%.1e of the largest value; at most %.1e is allowed. The file was not "
                   "written. The export of one of the net's layers is wrong: report it with "
                   "the config. eval and predict are not affected",
                   t->name, difference, most);
}

static int try_masks(const struct trial *of, struct pm_node *boxes, struct pm_node *masks,
                     double *difference)
{
    const struct pm_shape in = of->net->nodes[0]->out_shape, s = masks->out_shape;
    const struct pm_try_masks sample = { s, in.dim[1], in.dim[2] };
    const size_t each = (size_t)s.dim[0] * (size_t)s.dim[2] * (size_t)s.dim[3];
    float *v[] = { pm_malloc(pm_shape_count(boxes->out_shape) * sizeof **v),
                   pm_malloc(pm_shape_count(s) * sizeof **v),
                   pm_malloc(each * (size_t)sample.height * sizeof **v),
                   pm_malloc(each * (size_t)sample.width * sizeof **v) };
    struct known given[] = { { boxes, boxes->name, v[0] }, { masks, NULL, v[1] } };
    struct trial t = *of;
    const char *rows, *columns;
    double off = NAN;
    int err = PM_OK;

    t.given = (struct known_list){ given, PM_COUNT(given), 0 };
    pm_try_masks_fill(&sample, v[0], v[1]);
    pm_try_masks_expect(&sample, v[0], v[1], v[2], v[3]);
    pm_export_pasted(t.graph, &rows, &columns);
    PM_TRY(compare_factor(&t, rows, v[2], each * (size_t)sample.height, &off));
    PM_TRY(compare_factor(&t, columns, v[3], each * (size_t)sample.width, &off));
    PM_TRY(check_difference(&t, off, fmax(bound, pm_try_masks_bound(&sample))));
    *difference = isnan(*difference) ? off : fmax(off, *difference);
out:
    for (size_t i = 0; i < PM_COUNT(v); i++)
        pm_free(v[i]);
    return err;
}

/* Whether a node is the first or a further output of the net. */
static bool is_output(const struct trial *t, const struct pm_node *n, const struct pm_node *first)
{
    for (int i = 0; i < t->o->also_count; i++)
        if (t->o->also[i] == n)
            return true;
    return n == first;
}

/* ---- the trial ---------------------------------------------------------------------------- */

/* Whether the model takes other pictures than the net: pixels, or pictures that it resizes. */
static bool takes_others(const struct pm_export_options *o)
{
    return o->pixels || (o->frame && pm_export_frame_resizes(o->frame));
}

int pm_export_try(const char *file, const char *name, struct pm_net *net, const char *logits,
                  const struct pm_export *graph, const struct pm_export_options *o,
                  const struct pm_match *values, uint64_t seed, double *difference)
{
    struct trial t = { .file = file, .name = name, .net = net, .graph = graph, .o = o,
                       .values = values, .seed = seed };
    struct pm_node *output = pm_net_find(net, logits);
    int err = PM_OK;

    *difference = NAN;
    if (o->training || (takes_others(o) && !has_boxes(o)))
        return PM_OK;
    list_values(&t, output);
    PM_TRY(open_cpu(&t.device));
    PM_TRY(pm_import_open(t.file, &t.import));
    for (size_t k = 0; k < t.compared.count; k++)
        PM_TRY(compare(&t, &t.compared.list[k], is_output(&t, t.compared.list[k].node, output),
                       difference));
    PM_TRY(check_difference(&t, *difference, bound));
    if (masks_of(&t))
        PM_TRY(try_masks(&t, output, masks_of(&t), difference));
out:
    free_known(&t.compared);
    free_known(&t.given);
    pm_import_close(&t.import);
    pm_device_close(&t.device);
    return err;
}
