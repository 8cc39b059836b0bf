/* Functions for references: their arrays, and the options of a case's text, parsed without src/. */
#include <assert.h>
#include <stdlib.h>

#include "check_run.h"

static void make(struct ref_array *a, struct pm_shape shape)
{
    size_t count = 1;

    for (int i = 0; i < shape.rank; i++)
        count *= (size_t)shape.dim[i];
    if (a->count != count) {
        free(a->v);
        free(a->mag);
        a->v = malloc(count * sizeof *a->v);
        a->mag = malloc(count * sizeof *a->mag);
    }
    a->shape = shape;
    a->count = count;
    memset(a->v, 0, count * sizeof *a->v);
    memset(a->mag, 0, count * sizeof *a->mag);
}

void ref_outputs(struct ref *r, int count, const struct pm_shape *shape)
{
    size_t all = 0;

    assert(count <= (int)PM_COUNT(r->out));
    for (int k = 0; k < count; k++) {
        all += pm_shape_count(shape[k]);
        r->out[k] = shape[k];
    }
    r->outputs = count;
    make(&r->y, count == 1 ? shape[0] : PM_SHAPE1((int)all));
}

void ref_output(struct ref *r, struct pm_shape shape)
{
    ref_outputs(r, 1, &shape);
}

void ref_update(struct ref *r, int k)
{
    assert(k < r->vars);
    make(&r->after[k], r->var[k].shape);
    memcpy(r->after[k].v, r->var[k].v, r->var[k].count * sizeof(double));
}

/* The text after "key=", up to a space; NULL when absent. */
static const char *value_of(const struct ref *r, const char *key)
{
    const size_t length = strlen(key);

    for (const char *s = strchr(r->options, ' '); s; s = strchr(s, ' ')) {
        s++;
        if (strncmp(s, key, length) == 0 && s[length] == '=')
            return s + length + 1;
    }
    return NULL;
}

double ref_number(const struct ref *r, const char *key, double otherwise)
{
    double v;

    return ref_numbers(r, key, &v, 1) ? v : otherwise;
}

int ref_numbers(const struct ref *r, const char *key, double *out, int max)
{
    const char *s = value_of(r, key);
    int count = 0;

    if (!s)
        return 0;
    s += *s == '[';
    while (*s && *s != ' ' && *s != ']' && count < max) {
        char *end;

        out[count++] = strtod(s, &end);
        assert(end != s);
        s = end + (*end == ',');
    }
    return count;
}

bool ref_says(const struct ref *r, const char *key, const char *value, const char *otherwise)
{
    const char *s = value_of(r, key);

    if (!s)
        return strcmp(value, otherwise) == 0;
    return strncmp(s, value, strlen(value)) == 0 && strchr(" ", s[strlen(value)]);
}

int ref_window(const struct ref *r, const char *otherwise, int in, int kernel, int stride,
               int dilation, int explicit_before, int explicit_after, int *before)
{
    const int effective = (kernel - 1) * dilation + 1;
    int out, total;

    if (ref_says(r, "padding", "same", otherwise)) {
        out = (in + stride - 1) / stride;
        total = (out - 1) * stride + effective - in;
        *before = total > 0 ? total / 2 : 0;
        return out;
    }
    *before = ref_says(r, "padding", "explicit", otherwise) ? explicit_before : 0;
    total = ref_says(r, "padding", "explicit", otherwise) ? explicit_before + explicit_after : 0;
    return (in + total - effective) / stride + 1;
}

/* ---- inputs and variables of a subject ------------------------------------------------------- */

static struct ref_array doubles(const struct subject *s, struct pm_tensor t)
{
    struct ref_array a = { .shape = t.shape, .count = pm_count(t) };
    const char *data = s->values[t.value].data;

    a.v = malloc(a.count * sizeof *a.v);
    for (size_t i = 0; i < a.count; i++)
        a.v[i] = t.type == PM_F32 ? ((const float *)data)[i]
                 : t.type == PM_U8 ? ((const uint8_t *)data)[i]
                 : t.type == PM_I32 ? (double)((const int32_t *)data)[i]
                                    : (double)((const uint32_t *)data)[i];
    return a;
}

void ref_make(const struct subject *s, struct ref *r)
{
    *r = (struct ref){ .options = s->c->options, .train = s->c->train,
                       .inputs = s->node->inputs, .vars = s->node->var_count };
    for (int i = 0; i < r->inputs; i++)
        r->in[i] = doubles(s, s->x[i]);
    for (int k = 0; k < r->vars; k++)
        r->var[k] = doubles(s, s->w[k]);
}

static void array_free(struct ref_array *a)
{
    free(a->v);
    free(a->mag);
}

void ref_free(struct ref *r)
{
    for (int i = 0; i < r->inputs; i++)
        array_free(&r->in[i]);
    for (int k = 0; k < r->vars; k++)
        array_free(&r->var[k]), array_free(&r->after[k]);
    array_free(&r->y);
}
