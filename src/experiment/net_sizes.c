/* net_sizes: net_sizes.h has the contract. */
#include "experiment/net_sizes.h"

#include "experiment/experiment_parts.h"
#include "net/sizes.h"

#include <string.h>

enum { KEEP = 8 };

struct pm_net_sizes {
    struct pm_net_sizes_options o;
    struct pm_sizes *sizes;
    struct pm_net_of_size now; /* the last one; net NULL: none */
};

static const struct pm_frame_group *find_group(const struct pm_net_sizes *s, int height, int width)
{
    for (size_t i = 0; s->o.groups && i < s->o.groups->count; i++) {
        const struct pm_frame_group *g = &s->o.groups->list[i];

        if (g->frame.height == height && g->frame.width == width)
            return g;
    }
    return NULL;
}

static int pictures_of(const struct pm_net_sizes *s, const struct pm_frame_group *g)
{
    return g && g->count < (uint64_t)s->o.batch ? (int)g->count : s->o.batch;
}

static struct pm_net_want want_of(const struct pm_net_sizes *s, int height, int width)
{
    return (struct pm_net_want){ s->o.use, pictures_of(s, find_group(s, height, width)), height,
                                 width };
}

/* Names a picture of this frame in the error's message. */
static int explain(const struct pm_net_sizes *s, int err, int height, int width)
{
    const struct pm_frame_group *g = find_group(s, height, width);
    char name[1024];

    if (!g || err == PM_ELOST)
        return err;
    s->o.name(s->o.ctx, s->o.groups->order[g->first], name, sizeof name);
    return pm_fail((enum pm_error)err,
                   "%s: the net cannot take this picture at its own size, an input of %d x %d: %s. "
                   "Scale the picture, or set eval.resize=true", name, height, width,
                   pm_error_text());
}

/* Checks that the net has the variables whose values are there. The weights of a fully connected
 * layer, for one, depend on the size of its input. */
static int check_variables(const struct pm_net_sizes *s, const struct pm_net *net)
{
    const struct pm_variables *v = s->o.variables;
    char here[64], there[64];

    for (int i = 0; i < net->var_count && i < v->count; i++)
        if (strcmp(net->vars[i]->name, v->list[i].name) != 0 ||
            !pm_shape_equal(net->vars[i]->shape, v->list[i].shape))
            return pm_fail(PM_ECONFIG, "%s is %s for this input, but has the values of %s",
                           net->vars[i]->name, pm_shape_text(net->vars[i]->shape, here),
                           pm_shape_text(v->list[i].shape, there));
    if (net->var_count != v->count)
        return pm_fail(PM_ECONFIG, "it has %d variables for this input, but %d have values",
                       net->var_count, v->count);
    return PM_OK;
}

/* pm_sizes_options.make */
static int make_plan(void *ctx, int height, int width, struct pm_shared_memory *shared,
                     struct pm_sized *out)
{
    struct pm_net_sizes *s = ctx;
    const struct pm_net_want want = want_of(s, height, width);
    struct pm_outputs outputs;
    int err = PM_OK;

    PM_TRY(pm_experiment_net(s->o.e, want, &out->net, &outputs));
    PM_TRY(check_variables(s, out->net));
    err = pm_experiment_plan(s->o.e, out->net, want.batch, want.use, &outputs, s->o.device,
                             s->o.variables, s->o.slots, shared, &out->plan);
out:
    if (err < 0) {
        pm_net_destroy(&out->net);
        pm_experiment_forget(s->o.e, want);
    }
    return err;
}

/* pm_sizes_options.release */
static void release_net(void *ctx, struct pm_net *net)
{
    struct pm_net_sizes *s = ctx;
    const struct pm_shape images = net->nodes[0]->out_shape;
    const struct pm_net_want want = { s->o.use, 0, images.dim[1], images.dim[2] };

    pm_net_destroy(&net);
    pm_experiment_forget(s->o.e, want);
}

/* Returns the group with the largest picture or, at_once, with the most pixels in a batch. */
static const struct pm_frame_group *largest(const struct pm_net_sizes *s, bool at_once)
{
    const struct pm_frame_group *best = NULL;
    double most = -1;

    for (size_t i = 0; i < s->o.groups->count; i++) {
        const struct pm_frame_group *g = &s->o.groups->list[i];
        const double pixels =
            (double)g->frame.height * g->frame.width * (at_once ? pictures_of(s, g) : 1);

        if (pixels > most)
            best = g, most = pixels;
    }
    return best;
}

static int plan_group(struct pm_net_sizes *s, const struct pm_frame_group *g)
{
    const int size[1][2] = { { g->frame.height, g->frame.width } };
    const int err = pm_sizes_prepare(s->sizes, size, 1);

    return err < 0 ? explain(s, err, g->frame.height, g->frame.width) : PM_OK;
}

/* Many small pictures may need more memory than the largest one. */
static int plan_largest(struct pm_net_sizes *s)
{
    const struct pm_frame_group *g = largest(s, true), *most = largest(s, false);
    char bytes[24];
    int err = PM_OK;

    PM_TRY(plan_group(s, most));
    PM_TRY(plan_group(s, g));
    PM_INFO(s->o.use == PM_USE_EVAL ? "eval" : "predict",
            "%zu input size%s, the largest %d x %d; %d of %d x %d at once need most: %s for "
            "activations",
            s->o.groups->count, s->o.groups->count == 1 ? "" : "s", most->frame.height,
            most->frame.width, pictures_of(s, g), g->frame.height, g->frame.width,
            pm_bytes_text(pm_sizes_bytes(s->sizes), bytes));
out:
    return err;
}

int pm_net_sizes_create(const struct pm_net_sizes_options *o, struct pm_net_sizes **out)
{
    struct pm_net_sizes *s = pm_calloc(1, sizeof *s);
    struct pm_net_of_size first;
    int err = PM_OK;

    s->o = *o;
    s->sizes = pm_sizes_create(&(struct pm_sizes_options){
        .device = o->device, .keep = KEEP, .make = make_plan, .release = release_net, .ctx = s });
    if (o->groups)
        PM_TRY(plan_largest(s));
    else
        PM_TRY(pm_net_sizes_get(s, pm_experiment_frame(o->e, false), &first));
    *out = s, s = NULL;
out:
    pm_net_sizes_destroy(&s);
    return err;
}

void pm_net_sizes_destroy(struct pm_net_sizes **s)
{
    if (*s)
        pm_sizes_destroy(&(*s)->sizes);
    pm_free(*s);
    *s = NULL;
}

int pm_net_sizes_get(struct pm_net_sizes *s, struct pm_frame frame, struct pm_net_of_size *out)
{
    const struct pm_net_want want = want_of(s, frame.height, frame.width);
    struct pm_sized sized;
    struct pm_net *net = NULL;
    int err = PM_OK;

    if (!s->now.net || memcmp(&s->now.frame, &frame, sizeof frame) != 0) {
        s->now = (struct pm_net_of_size){ 0 };
        err = pm_sizes_get(s->sizes, frame.height, frame.width, &sized);
        if (err < 0)
            return explain(s, err, frame.height, frame.width);
        s->now = (struct pm_net_of_size){ frame, want.batch, sized.net, sized.plan, { 0 } };
        PM_TRY(pm_experiment_net(s->o.e, want, &net, &s->now.outputs));
    }
    *out = s->now;
out:
    pm_net_destroy(&net);
    return err;
}
