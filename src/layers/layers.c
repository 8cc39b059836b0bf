/* layers: the table of layers, and helpers shared by several layers: types and the text of initial
 * values. */
#include "layers/infer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PM_LAYER(name) extern const struct pm_layer pm_layer_##name;
#include "layers.def"
#undef PM_LAYER

static const struct pm_layer *const table[] = {
#define PM_LAYER(name) &pm_layer_##name,
#include "layers.def"
#undef PM_LAYER
};

const struct pm_layer *const *pm_layers(size_t *count)
{
    *count = PM_COUNT(table);
    return table;
}

const struct pm_layer *pm_layer_find(const char *name)
{
    for (size_t i = 0; i < PM_COUNT(table); i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

const char *pm_type_name(enum pm_type t)
{
    static const char *const names[] = { "float32", "int32", "uint32", "uint8" };

    return names[t];
}

int pm_need_floats(const struct pm_node *n, int first, int last)
{
    for (int i = first; i <= last && i < n->inputs; i++)
        if (n->in[i]->out_type != PM_F32)
            return pm_fail(PM_ECONFIG, "%s: %s takes float32 values, but input %d, %s, holds %s",
                           n->name, n->layer->name, i, n->in[i]->name,
                           pm_type_name(n->in[i]->out_type));
    return PM_OK;
}

int pm_need_types(const struct pm_node *n, const enum pm_type *types, int either,
                  const char *names)
{
    for (int i = 0; i < n->inputs; i++) {
        const enum pm_type type = n->in[i]->out_type;

        if (type == types[i] || (i == either && (type == PM_F32 || type == PM_I32)))
            continue;
        return pm_fail(PM_ECONFIG, "%s: input %d, %s, holds %s instead of %s. The inputs must be "
                       "%s, in this order", n->name, i, n->in[i]->name, pm_type_name(type),
                       i == either ? "float32 or int32" : pm_type_name(types[i]), names);
    }
    return PM_OK;
}

bool pm_is_sequence(struct pm_shape s)
{
    return s.rank == 3 || (s.rank == 4 && s.dim[1] == 1);
}

bool pm_input_is_shape(const struct pm_node *n, int input, struct pm_shape wanted)
{
    return pm_shape_equal(n->in[input]->out_shape, wanted);
}

int pm_need_box_maps(const struct pm_node *n, const char *numbers, const char *need)
{
    const struct pm_shape x = n->in[0]->out_shape, b = n->in[1]->out_shape;
    char text[64];

    if (b.rank != 3 || b.dim[2] != 4)
        return pm_fail(PM_ECONFIG, "%s: boxes have shape %s instead of n x R x 4. Give the corners "
                       "of R boxes for each of n images", n->name, pm_shape_text(b, text));
    if (x.rank != 4 || x.dim[0] != b.dim[0] * b.dim[1])
        return pm_fail(PM_ECONFIG, "%s: logits have shape %s instead of %d x h x w x %s. Give each "
                       "box %s", n->name, pm_shape_text(x, text), b.dim[0] * b.dim[1], numbers,
                       need);
    return PM_OK;
}

int pm_need_keypoints(const struct pm_node *n, int input, int images, int keypoints)
{
    const struct pm_shape t = n->in[input]->out_shape;
    char text[64];

    if (t.rank != 4 || t.dim[0] != images || t.dim[2] != keypoints || t.dim[3] != 2)
        return pm_fail(PM_ECONFIG, "%s: truth_keypoints have shape %s instead of %d x M x %d x 2. "
                       "Give each true object y and x of %d keypoints", n->name,
                       pm_shape_text(t, text), images, keypoints, keypoints);
    return PM_OK;
}

int pm_optional_input(const struct pm_node *n, int first, enum pm_type type)
{
    for (int i = first; i < n->inputs; i++)
        if (n->in[i]->out_type == type)
            return i;
    return -1;
}

int pm_infer_same(struct pm_node *n)
{
    n->out_shape = n->in[0]->out_shape;
    n->out_type = n->in[0]->out_type;
    return pm_need_floats(n, 0, n->inputs - 1);
}

/* ---- initial values -------------------------------------------------------------------- */

static const char list[] = "values(";

/* Returns the end of the number at s, NULL if no number of float's range is there. */
static const char *end_of_number(const char *s, float *out)
{
    char *end;
    const double v = strtod(s, &end);

    *out = (float)v;
    return end != s && fabs(v) <= 1e30 && (*end == ',' || *end == ')') ? end : NULL;
}

/* pm_init.read of a list; from is its text, which parse_list has checked. */
static int read_list(const void *from, size_t first, size_t count, float *out)
{
    const char *s = (const char *)from + strlen(list);
    float v;

    for (size_t i = 0; s && i < first + count; i++) {
        s = end_of_number(s, &v);
        if (i >= first)
            out[i - first] = v;
        s = s && *s == ',' ? s + 1 : NULL;
    }
    return PM_OK;
}

static int parse_list(const char *text, struct pm_init *out, const char *where)
{
    const char *s = text + strlen(list);
    float v;

    *out = (struct pm_init){ .kind = PM_INIT_GIVEN, .read = read_list, .from = text };
    do {
        s = end_of_number(s, &v);
        out->count++;
    } while (s && *s++ == ',');
    return s && !*s ? PM_OK
                    : pm_fail(PM_ECONFIG, "%s: '%s': number %zu of the list is not a number up to "
                              "1e30, or the list does not end with a bracket. Write it as in "
                              "values(0,0.5,1)", where, text, out->count);
}

int pm_init_parse(const char *text, struct pm_init *out, const char *where)
{
    /* -1: a number is required. */
    static const struct { const char *name; enum pm_init_kind kind; double a; } kinds[] = {
        { "constant", PM_INIT_CONSTANT, 0 },
        { "truncated", PM_INIT_TRUNCATED, -1 },
        { "normal", PM_INIT_NORMAL, -1 },
        { "xavier", PM_INIT_XAVIER, 0 },
        { "variance_scaling", PM_INIT_VARIANCE_SCALING, 2 },
        { "variance_scaling_fan_out", PM_INIT_VARIANCE_FAN_OUT, 2 },
        { "variance_scaling_uniform", PM_INIT_VARIANCE_UNIFORM, 1 },
        { "orthogonal", PM_INIT_ORTHOGONAL, 1 },
    };
    size_t length = strcspn(text, "(");

    if (strncmp(text, list, strlen(list)) == 0)
        return parse_list(text, out, where);
    for (size_t i = 0; i < PM_COUNT(kinds); i++) {
        if (strlen(kinds[i].name) != length || strncmp(text, kinds[i].name, length) != 0)
            continue;
        *out = (struct pm_init){ kinds[i].kind, (float)kinds[i].a };
        if (text[length] == '(') {
            char *end;
            double a = strtod(text + length + 1, &end);

            if (end == text + length + 1 || strcmp(end, ")") != 0 || !(a >= -1e6 && a <= 1e6) ||
                (a < 0 && out->kind != PM_INIT_CONSTANT))
                return pm_fail(PM_ECONFIG, "%s: '%s': the number in brackets must be %s", where,
                               text, out->kind == PM_INIT_CONSTANT ? "in -1e6..1e6" : "in 0..1e6");
            out->a = (float)a;
        } else if (out->a < 0) {
            return pm_fail(PM_ECONFIG, "%s: '%s' needs its standard deviation, as in %s(0.1)",
                           where, text, text);
        }
        return PM_OK;
    }
    return pm_fail(PM_ECONFIG,
                   "%s: '%s' is not an initializer (constant(a), truncated(stddev), "
                   "normal(stddev), xavier, variance_scaling(factor), "
                   "variance_scaling_fan_out(factor), variance_scaling_uniform(factor), "
                   "orthogonal(factor), values(a,b,...))",
                   where, text);
}
