/* one_call: runs one call on one device. The buffer of each value is GUARD bytes, contents, GUARD
 * bytes; all of it is checked after a run. The CPU side and the device use the same code. */
#include "verify/verify_private.h"

#include <assert.h>
#include <string.h>

enum { GUARD = 4096, GUARD_WORD = 0x5a17beef, NAN_WORD = 0x7fc0dead };

struct pm_one_call {
    struct pm_device *device;          /* borrowed */
    const struct pm_verify_call *call; /* borrowed */
    struct pm_buf_spec spec[PM_MAX_BUFS];
    int bufs;
    struct pm_buffer *buffer[PM_MAX_BUFS];
    size_t bytes[PM_MAX_BUFS];         /* size of the contents, a multiple of 4; 0: none */
    uint32_t *before[PM_MAX_BUFS], *after[PM_MAX_BUFS]; /* whole buffers, with guards */
    int place[PM_MAX_BUFS];            /* index of the buffer it uses; another only in place */
    bool replaced[PM_MAX_BUFS];        /* an input that shares an output's buffer */
    void *params;
    struct pm_program *program;
};

/* ---- in place --------------------------------------------------------------------------- */

static int buf_named(const struct pm_buf_spec *spec, int bufs, const char *name, size_t length)
{
    for (int i = 0; i < bufs; i++)
        if (strlen(spec[i].name) == length && strncmp(spec[i].name, name, length) == 0)
            return i;
    assert(!"the row's inplace names a buffer that it does not have");
    return -1;
}

/* Finds the n-th "y=x" of the row (n >= 1). */
static bool pair(const struct pm_kernel *k, int n, int *y, int *x)
{
    struct pm_buf_spec spec[PM_MAX_BUFS];
    int bufs = pm_kernel_bufs(k, spec);

    for (const char *s = k->inplace; s && *s; s += strcspn(s, ","), s += *s == ',')
        if (--n == 0) {
            size_t left = strcspn(s, "="), right = strcspn(s + left + 1, ",");

            *y = buf_named(spec, bufs, s, left);
            *x = buf_named(spec, bufs, s + left + 1, right);
            return true;
        }
    return false;
}

bool pm_one_call_inplace(const struct pm_verify_call *call, int n, bool *more)
{
    int y = 0, x = 0;

    *more = pair(call->kernel, n, &y, &x);
    return *more && call->buf[y].bytes > 0 && call->buf[x].bytes >= call->buf[y].bytes;
}

/* ---- making ----------------------------------------------------------------------------- */

static int make_buffer(struct pm_one_call *o, int b, size_t bytes)
{
    size_t whole;

    o->bytes[b] = (bytes + 3) / 4 * 4;
    whole = 2 * GUARD + (o->bytes[b] + 255) / 256 * 256;
    o->before[b] = pm_malloc(whole);
    o->after[b] = pm_malloc(whole);
    return pm_buffer_create(o->device, whole, &o->buffer[b]);
}

static int make_buffers(struct pm_one_call *o, int level)
{
    const struct pm_verify_call *c = o->call;
    size_t scratch[PM_MAX_BUFS];
    int err = PM_OK;

    PM_TRY(pm_call_scratch(o->device, c->kernel, o->params, c->count, level, scratch));
    for (int b = 0; b < o->bufs; b++) {
        size_t bytes = pm_access_own(o->spec[b].access) ? scratch[b] : c->buf[b].bytes;

        if (bytes > 0 && o->place[b] == b)
            PM_TRY(make_buffer(o, b, bytes));
    }
out:
    return err;
}

static int make_program(struct pm_one_call *o, int level)
{
    const struct pm_verify_call *c = o->call;
    struct pm_bound_call call = { .kernel = c->kernel, .label = c->label, .count = c->count,
                                  .params = o->params };

    for (int b = 0; b < o->bufs; b++) {
        int at = o->place[b];
        size_t bytes = at == b ? o->bytes[b] : c->buf[b].bytes;

        if (!pm_access_own(o->spec[b].access))
            bytes = c->buf[b].bytes;
        if (o->buffer[at])
            call.buf[b] = (struct pm_place){ o->buffer[at], GUARD, bytes };
    }
    return pm_program_create(o->device, &(struct pm_program_desc){
        .name = "verify", .calls = &call, .calls_count = 1, .slots = 1, .levels = &level },
        &o->program);
}

int pm_one_call_create(struct pm_device *d, const struct pm_verify_call *call, struct pm_way way,
                       struct pm_one_call **out)
{
    struct pm_one_call *o = pm_calloc(1, sizeof *o);
    const struct pm_kernel *k = call->kernel;
    int y, x, err = PM_OK;

    o->device = d;
    o->call = call;
    o->bufs = pm_kernel_bufs(k, o->spec);
    o->params = pm_calloc(1, k->params_size + 1);
    memcpy(o->params, call->params, k->params_size);
    if (k->accumulate && way.accumulate >= 0)
        memcpy((char *)o->params + k->accumulate - 1, &way.accumulate, sizeof(int));
    for (int b = 0; b < o->bufs; b++)
        o->place[b] = b;
    if (way.inplace && pair(k, way.inplace, &y, &x)) {
        o->place[y] = x;
        o->replaced[x] = true;
    }
    PM_TRY(make_buffers(o, way.level));
    PM_TRY(make_program(o, way.level));
    *out = o, o = NULL;
out:
    pm_one_call_destroy(&o);
    return err;
}

void pm_one_call_destroy(struct pm_one_call **one)
{
    struct pm_one_call *o = *one;

    if (!o)
        return;
    pm_program_destroy(&o->program);
    for (int b = 0; b < PM_MAX_BUFS; b++) {
        pm_buffer_destroy(o->device, &o->buffer[b]);
        pm_free(o->before[b]);
        pm_free(o->after[b]);
    }
    pm_free(o->params);
    pm_free(o);
    *one = NULL;
}

/* ---- running ---------------------------------------------------------------------------- */

static void fill_before(struct pm_one_call *o, int b, const void *data)
{
    size_t words = pm_buffer_size(o->buffer[b]) / 4, first = GUARD / 4;
    size_t bytes = pm_access_own(o->spec[b].access) ? 0 : o->call->buf[b].bytes;
    uint32_t *w = o->before[b], inside = o->spec[b].access == 'z' ? 0 : (uint32_t)NAN_WORD;

    for (size_t i = 0; i < words; i++)
        w[i] = i >= first && i < first + o->bytes[b] / 4 ? inside : GUARD_WORD;
    if (o->spec[b].access != 'w' && data)
        memcpy(w + first, data, bytes);
}

/* Describes a forbidden write of a run in `fault`. */
static void find_fault(const struct pm_one_call *o, int b, char *fault, size_t size)
{
    const char *kernel = o->call->kernel->name, *name = o->spec[b].name;
    size_t words = pm_buffer_size(o->buffer[b]) / 4, first = GUARD / 4;
    size_t end = first + o->bytes[b] / 4;

    for (size_t i = 0; i < words; i++) {
        if (i == first)
            i = end;
        if (o->after[b][i] == GUARD_WORD)
            continue;
        if (i < first)
            snprintf(fault, size, "%s writes %zu bytes before its buffer %s", kernel,
                     (first - i) * 4, name);
        else
            snprintf(fault, size, "%s writes %zu bytes after the end of its buffer %s", kernel,
                     (i - end) * 4, name);
        return;
    }
    if (o->spec[b].access == 'z' &&
        memcmp(o->before[b] + first, o->after[b] + first, o->bytes[b]) != 0)
        snprintf(fault, size, "%s does not set its counters %s back to zero", kernel, name);
    if (o->spec[b].access == 'r' && !o->replaced[b] &&
        memcmp(o->before[b] + first, o->after[b] + first, o->bytes[b]) != 0)
        snprintf(fault, size, "%s changes its input %s", kernel, name);
}

int pm_one_call_run(struct pm_one_call *o, const void *const contents[PM_MAX_BUFS], char *fault,
                    size_t size)
{
    int err = PM_OK;

    fault[0] = 0;
    for (int b = 0; b < o->bufs; b++) {
        if (!o->buffer[b])
            continue;
        fill_before(o, b, contents ? contents[b] : o->call->buf[b].data);
        PM_TRY(pm_buffer_write(o->device, o->buffer[b], 0, o->before[b],
                               pm_buffer_size(o->buffer[b])));
    }
    PM_TRY(pm_program_submit(o->program, 0));
    PM_TRY(pm_program_wait(o->program, 0));
    for (int b = 0; b < o->bufs; b++) {
        if (!o->buffer[b])
            continue;
        PM_TRY(pm_buffer_read(o->device, o->buffer[b], 0, o->after[b],
                              pm_buffer_size(o->buffer[b])));
        if (!fault[0])
            find_fault(o, b, fault, size);
    }
out:
    return err;
}

const void *pm_one_call_result(const struct pm_one_call *o, int b)
{
    return o->after[o->place[b]] + GUARD / 4;
}

const char *pm_one_call_variant(const struct pm_one_call *o)
{
    return pm_program_variant(o->program, 0);
}
