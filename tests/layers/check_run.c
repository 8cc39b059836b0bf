/* Runs built cases on a device; check_run.h describes the functions. */
#include "check_run.h"

#include <assert.h>
#include <stdlib.h>

enum { GUARD = 256, GUARD_WORD = 0x5a17beef };

/* The device side of a run. The buffer of value v holds GUARD bytes, the contents (rounded up to
 * 256 + 4), and GUARD bytes. */
struct run {
    struct subject *s;
    struct pm_device *d;
    struct pm_buffer **value;   /* one per value; NULL when these calls do not use it */
    struct pm_buffer **scratch; /* [call * PM_MAX_BUFS + buffer] */
    struct pm_bound_call *calls;
    char *params;               /* copies whose accumulate flag may differ */
    int count, *levels;
    const struct run_options *o;
};

static size_t padded(size_t bytes)
{
    return GUARD + (bytes + 255) / 256 * 256 + GUARD;
}

static int put_value(struct run *r, int v)
{
    int err = PM_OK;
    const struct image *m = &r->s->values[v];
    const size_t words = padded(m->bytes) / 4;
    uint32_t *host = malloc(words * 4);

    for (size_t i = 0; i < words; i++)
        host[i] = GUARD_WORD;
    memcpy((char *)host + GUARD, m->data, m->bytes);
    PM_TRY(pm_buffer_create(r->d, words * 4, &r->value[v]));
    PM_TRY(pm_buffer_write(r->d, r->value[v], 0, host, words * 4));
out:
    free(host);
    return err;
}

static const char *place_text(const struct run *r, int v)
{
    for (int i = 0; i < r->count; i++) {
        const struct pm_planned_call *c = &r->s->calls.calls[r->o->first + i];
        static char text[96];
        struct pm_buf_spec spec[PM_MAX_BUFS];

        pm_kernel_bufs(c->kernel, spec);
        for (int b = 0; b < c->bufs; b++)
            if (c->buf[b] >= 0 && pm_calls_root(&r->s->calls, c->buf[b]) == v) {
                snprintf(text, sizeof text, "%s buffer %s", c->kernel->name, spec[b].name);
                return text;
            }
    }
    return "?";
}

/* True when a call of the run may write value v. */
static bool written(const struct run *r, int v)
{
    for (int i = 0; i < r->count; i++) {
        const struct pm_planned_call *c = &r->s->calls.calls[r->o->first + i];
        struct pm_buf_spec spec[PM_MAX_BUFS];

        pm_kernel_bufs(c->kernel, spec);
        for (int b = 0; b < c->bufs; b++)
            if (c->buf[b] >= 0 && pm_calls_root(&r->s->calls, c->buf[b]) == v &&
                spec[b].access != 'r')
                return true;
    }
    return false;
}

/* Reads value v back after the checks. With .alias, an input whose memory the output took is not
 * read. */
static int get_value(struct run *r, int v, bool replaced)
{
    int err = PM_OK;
    struct image *m = &r->s->values[v];
    const size_t words = padded(m->bytes) / 4;
    uint32_t *host = malloc(words * 4);

    PM_TRY(pm_buffer_read(r->d, r->value[v], 0, host, words * 4));
    for (size_t i = 0; i < words; i++) {
        if (i == GUARD / 4)
            i += m->bytes / 4;
        if (host[i] != GUARD_WORD)
            PM_TRY(pm_fail(PM_EFAIL, "%s: written %ld bytes outside its %zu", place_text(r, v),
                           i * 4 < GUARD ? (long)(i * 4) - GUARD
                                         : (long)(i * 4 - GUARD - m->bytes) + 4, m->bytes));
    }
    if (!written(r, v) && !replaced && memcmp((char *)host + GUARD, m->data, m->bytes))
        PM_TRY(pm_fail(PM_EFAIL, "%s is read only, but has changed", place_text(r, v)));
    if (!replaced)
        memcpy(m->data, (char *)host + GUARD, m->bytes);
out:
    free(host);
    return err;
}

/* Index of the input whose memory output b of the row may take ("y=x"), or -1. */
static int alias_of(const struct pm_kernel *k, const struct pm_buf_spec *spec, int bufs, int b)
{
    const size_t length = strlen(spec[b].name);

    for (const char *s = k->inplace; s && *s; s += strcspn(s, ","), s += *s == ',')
        if (!strncmp(s, spec[b].name, length) && s[length] == '=')
            for (int i = 0; i < bufs; i++)
                if (strlen(spec[i].name) == strcspn(s + length + 1, ",") &&
                    !strncmp(s + length + 1, spec[i].name, strlen(spec[i].name)))
                    return i;
    return -1;
}

bool adds_to_gradient(const struct subject *s, int call)
{
    const struct pm_planned_call *c = &s->calls.calls[call];
    struct pm_buf_spec spec[PM_MAX_BUFS];
    const int bufs = c->kernel->accumulate ? pm_kernel_bufs(c->kernel, spec) : 0;

    for (int b = 0; b < bufs; b++)
        for (int k = 0; k < s->node->var_count && spec[b].access == 'u'; k++)
            if (c->buf[b] >= 0 && c->buf[b] == s->dw[k].value)
                return true;
    return false;
}

/* True when the option accumulate sets the flag of call i: always for a single call; among
 * several calls only for those that add to a gradient from before the step. */
static bool sets_accumulate(const struct run *r, int i)
{
    const int call = r->o->first + i;

    return r->s->calls.calls[call].kernel->accumulate && r->o->accumulate >= 0 &&
           (r->count == 1 || (r->o->accumulate == 1 && adds_to_gradient(r->s, call)));
}

static int bind(struct run *r, int i)
{
    int err = PM_OK;
    const struct pm_planned_call *c = &r->s->calls.calls[r->o->first + i];
    struct pm_bound_call *b = &r->calls[i];
    struct pm_buf_spec spec[PM_MAX_BUFS];
    size_t scratch[PM_MAX_BUFS];
    char *params = r->params + (size_t)i * 512;

    assert(c->kernel->params_size <= 512);
    memcpy(params, c->params, c->kernel->params_size);
    const int bufs = pm_kernel_bufs(c->kernel, spec);

    if (sets_accumulate(r, i))
        memcpy(params + c->kernel->accumulate - 1, &r->o->accumulate, sizeof(int));
    *b = (struct pm_bound_call){ .kernel = c->kernel, .label = c->label, .count = c->count,
                                 .params = params };
    PM_TRY(pm_call_scratch(r->d, c->kernel, params, c->count, r->o->level, scratch));
    for (int k = 0; k < bufs; k++) {
        if (pm_access_own(spec[k].access)) {
            if (scratch[k] == 0)
                continue;
            struct pm_buffer **t = &r->scratch[i * PM_MAX_BUFS + k];

            PM_TRY(pm_buffer_create(r->d, (scratch[k] + 255) / 256 * 256, t));
            PM_TRY(pm_buffer_fill(r->d, *t, 0, pm_buffer_size(*t),
                                  spec[k].access == 'z' ? 0 : NAN_WORD));
            b->buf[k] = (struct pm_place){ *t, 0, scratch[k] };
        } else if (c->buf[k] >= 0) {
            const struct pm_calls *calls = &r->s->calls;
            int v = pm_calls_root(calls, c->buf[k]);
            const int from = r->o->alias ? alias_of(c->kernel, spec, c->bufs, k) : -1;

            if (from >= 0)
                v = pm_calls_root(calls, c->buf[from]);
            if (!r->value[v])
                PM_TRY(put_value(r, v));
            b->buf[k] = from >= 0
                            ? (struct pm_place){ r->value[v], GUARD, r->s->values[v].bytes }
                            : (struct pm_place){ r->value[v],
                                                 GUARD + pm_calls_at(calls, c->buf[k]),
                                                 r->s->values[c->buf[k]].bytes };
        }
    }
out:
    return err;
}

static int run_make(struct run *r, struct subject *s, struct pm_device *d,
                    const struct run_options *o)
{
    int err = PM_OK;

    *r = (struct run){ .s = s, .d = d, .count = o->last - o->first, .o = o };
    r->value = calloc((size_t)s->calls.value_count + 1, sizeof *r->value);
    r->scratch = calloc((size_t)r->count * PM_MAX_BUFS + 1, sizeof *r->scratch);
    r->calls = calloc((size_t)r->count + 1, sizeof *r->calls);
    r->params = calloc((size_t)r->count + 1, 512);
    r->levels = calloc((size_t)r->count + 1, sizeof *r->levels);
    for (int i = 0; i < r->count; i++) {
        r->levels[i] = o->level;
        PM_TRY(bind(r, i));
    }
out:
    return err;
}

static void run_free(struct run *r)
{
    for (int v = 0; r->value && v < r->s->calls.value_count; v++)
        pm_buffer_destroy(r->d, &r->value[v]);
    for (int i = 0; r->scratch && i < r->count * PM_MAX_BUFS; i++)
        pm_buffer_destroy(r->d, &r->scratch[i]);
    free(r->value);
    free(r->scratch);
    free(r->calls);
    free(r->params);
    free(r->levels);
}

/* After a run all counters of the calls are zero again. */
static int check_counters(const struct run *r)
{
    int err = PM_OK;
    uint32_t *counts = NULL;

    for (int i = 0; i < r->count; i++) {
        struct pm_buf_spec spec[PM_MAX_BUFS];
        const int bufs = pm_kernel_bufs(r->calls[i].kernel, spec);

        for (int k = 0; k < bufs; k++) {
            const struct pm_place *p = &r->calls[i].buf[k];

            if (spec[k].access != 'z' || !p->buffer)
                continue;
            counts = realloc(counts, p->size);
            PM_TRY(pm_buffer_read(r->d, p->buffer, p->offset, counts, p->size));
            for (size_t n = 0; n < p->size / 4; n++)
                if (counts[n])
                    PM_TRY(pm_fail(PM_EFAIL, "%s: counter %zu is %u after the call",
                                   r->calls[i].kernel->name, n, counts[n]));
        }
    }
out:
    free(counts);
    return err;
}

/* With .alias the output lies in the input's buffer; the host images are exchanged, too. */
static void exchange_aliases(struct run *r, bool *replaced)
{
    for (int i = 0; r->o->alias && i < r->count; i++) {
        const struct pm_planned_call *c = &r->s->calls.calls[r->o->first + i];
        struct pm_buf_spec spec[PM_MAX_BUFS];

        pm_kernel_bufs(c->kernel, spec);
        for (int k = 0; k < c->bufs; k++) {
            const int from = c->buf[k] < 0 ? -1 : alias_of(c->kernel, spec, c->bufs, k);

            if (from < 0)
                continue;
            const int x = pm_calls_root(&r->s->calls, c->buf[from]);
            const int y = pm_calls_root(&r->s->calls, c->buf[k]);
            r->value[y] = r->value[x];
            r->value[x] = NULL;
            replaced[x] = true;
        }
    }
}

int subject_run(struct subject *s, struct pm_device *d, const struct run_options *o)
{
    int err = PM_OK;
    struct run r = { 0 };
    struct pm_program *p = NULL;
    bool *replaced = calloc((size_t)s->calls.value_count + 1, sizeof *replaced);

    if (o->first == o->last)
        goto out;
    PM_TRY(run_make(&r, s, d, o));
    const struct pm_program_desc desc = { .name = "check", .calls = r.calls,
                                          .calls_count = (size_t)r.count, .slots = 1,
                                          .levels = r.levels };
    PM_TRY(pm_program_create(d, &desc, &p));
    PM_TRY(pm_program_submit(p, 0));
    PM_TRY(pm_program_wait(p, 0));
    if (o->variant)
        *o->variant = pm_program_variant(p, 0);
    PM_TRY(check_counters(&r));
    exchange_aliases(&r, replaced);
    for (int v = 0; v < s->calls.value_count; v++)
        if (r.value[v])
            PM_TRY(get_value(&r, v, replaced[v]));
out:
    pm_program_destroy(&p);
    if (r.s)
        run_free(&r);
    free(replaced);
    return err;
}

int subject_time(struct subject *s, struct pm_device *d, int call, int level, double *seconds,
                 const char **variant)
{
    int err = PM_OK;
    struct run r = { 0 };
    struct pm_program *p = NULL;
    const struct run_options o = { .first = call, .last = call + 1, .level = level,
                                   .accumulate = -1 };

    PM_TRY(run_make(&r, s, d, &o));
    const struct pm_program_desc desc = { .name = "bench", .calls = r.calls, .calls_count = 1,
                                          .slots = 1, .levels = r.levels };
    PM_TRY(pm_program_create(d, &desc, &p));
    *variant = pm_program_variant(p, 0);
    *seconds = INFINITY;
    for (double start = pm_seconds(), runs = 0; runs < 3 || pm_seconds() - start < 0.3; runs++) {
        const double before = pm_seconds();

        PM_TRY(pm_program_submit(p, 0));
        PM_TRY(pm_program_wait(p, 0));
        *seconds = fmin(*seconds, pm_seconds() - before);
    }
out:
    pm_program_destroy(&p);
    if (r.s)
        run_free(&r);
    return err;
}
