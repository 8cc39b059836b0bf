/* variables: named weights, slots and gradients of one device. Trainable variables come first in
 * the block, late ones last. So gradients and slots need room for trainable variables only, and an
 * update is one call over each block. Each variable starts at a multiple of 256 bytes. */
#include <pumice/plan.h>
#include <pumice/rng.h>

#include <math.h>
#include <string.h>

#include "net/orthonormal.h"

enum { ALIGNMENT = 256 };

static size_t round_up(size_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t bytes_of(const struct pm_variable *v)
{
    return pm_shape_count(v->shape) * sizeof(float);
}

static void lay_out(struct pm_variables *v)
{
    size_t at = 0;

    for (int pass = 0; pass < 3; pass++) {
        for (int i = 0; i < v->count; i++) {
            const struct pm_variable *x = &v->list[i];

            if (pass != (x->trainable ? 0 : x->late ? 2 : 1))
                continue;
            v->offset[i] = at;
            at += round_up(bytes_of(&v->list[i]));
        }
        if (pass == 0)
            v->trainable_bytes = at;
        else if (pass == 1)
            v->late_at = at;
    }
    v->bytes = at;
}

static int block(struct pm_variables *v, size_t bytes, const char *what, struct pm_buffer **out)
{
    const struct pm_caps *caps = pm_device_caps(v->device);
    char want[24], limit[24];
    int err = PM_OK;

    if (bytes == 0)
        return PM_OK;
    if (bytes > caps->max_buffer_bytes)
        return pm_fail(PM_EMEMORY,
                       "%s: the net's %s need %s in one buffer, but the device allows %s; use a "
                       "smaller net or another device",
                       pm_device_get_info(v->device)->address, what, pm_bytes_text(bytes, want),
                       pm_bytes_text(caps->max_buffer_bytes, limit));
    PM_TRY(pm_buffer_create(v->device, bytes, out));
    PM_TRY(pm_buffer_fill(v->device, *out, 0, bytes, 0)); /* paddings stay zero */
out:
    return err;
}

int pm_variables_create(struct pm_device *d, const struct pm_net *net, bool grads,
                        const char *const *slot_names, struct pm_variables **out)
{
    struct pm_variables *v = pm_calloc(1, sizeof *v);

    v->device = d;
    v->arena = pm_arena_create();
    v->conventions = net->conventions;
    v->batch_norm_epsilon = net->batch_norm_epsilon;
    v->count = net->var_count;
    v->list = pm_arena_alloc(v->arena, sizeof *v->list * (size_t)(v->count + 1));
    v->offset = pm_arena_alloc(v->arena, sizeof *v->offset * (size_t)(v->count + 1));
    for (int i = 0; i < v->count; i++) {
        v->list[i] = *net->vars[i];
        v->list[i].name = pm_arena_strdup(v->arena, net->vars[i]->name);
    }
    lay_out(v);
    v->gradient_bytes = grads ? v->trainable_bytes : 0;
    for (; slot_names && slot_names[v->slot_count]; v->slot_count++)
        v->slot_names[v->slot_count] = slot_names[v->slot_count];
    *out = v;
    return PM_OK;
}

int pm_variables_allocate(struct pm_variables *v)
{
    int err = PM_OK;

    PM_TRY(block(v, v->bytes, "variables", &v->values));
    PM_TRY(block(v, v->gradient_bytes, "gradients", &v->grads));
    for (int k = 0; k < v->slot_count; k++)
        PM_TRY(block(v, v->trainable_bytes, "optimizer slots", &v->slots[k]));
    PM_TRY(block(v, v->average_bytes, "moving averages", &v->averages));
out:
    return err;
}

void pm_variables_destroy(struct pm_variables **v)
{
    if (*v) {
        struct pm_device *d = (*v)->device;

        pm_buffer_destroy(d, &(*v)->values);
        pm_buffer_destroy(d, &(*v)->grads);
        for (int k = 0; k < PM_MAX_SLOTS; k++)
            pm_buffer_destroy(d, &(*v)->slots[k]);
        pm_buffer_destroy(d, &(*v)->averages);
        pm_arena_destroy(&(*v)->arena);
        pm_free(*v);
    }
    *v = NULL;
}

/* ---- initial values ----------------------------------------------------------------------- */

/* Fills the matrix of PM_INIT_ORTHOGONAL. */
static void draw_orthogonal(const struct pm_variable *v, struct pm_rng *r, float *out)
{
    const size_t count = pm_shape_count(v->shape);
    const size_t columns = v->shape.rank ? (size_t)v->shape.dim[v->shape.rank - 1] : 1;
    const size_t rows = count / columns;
    const bool wide = columns > rows;
    const size_t vectors = wide ? rows : columns, length = wide ? columns : rows;
    double *all = pm_malloc(count * sizeof *all);

    for (size_t i = 0; i < count; i++)
        all[i] = pm_rng_normal(r);
    pm_orthonormalise(all, vectors, length);
    for (size_t i = 0; i < vectors; i++)
        for (size_t k = 0; k < length; k++)
            out[wide ? i * columns + k : k * columns + i] =
                (float)(v->init.a * all[i * length + k]);
    pm_free(all);
}

int pm_variable_initial(const struct pm_variable *v, uint64_t seed, float *out)
{
    struct pm_rng r = pm_rng_make(seed, pm_hash(v->name), 0, 0);
    size_t count = pm_shape_count(v->shape);
    double a = v->init.a, in = v->fan_in, both = v->fan_in + v->fan_out;

    if (v->init.kind == PM_INIT_GIVEN)
        return v->init.read(v->init.from, 0, count, out);
    if (v->init.kind == PM_INIT_ORTHOGONAL) {
        draw_orthogonal(v, &r, out);
        return PM_OK;
    }
    for (size_t i = 0; i < count; i++)
        switch (v->init.kind) {
        case PM_INIT_CONSTANT:
            out[i] = v->init.a;
            break;
        case PM_INIT_TRUNCATED:
            out[i] = (float)(a * pm_rng_truncated(&r));
            break;
        case PM_INIT_NORMAL:
            out[i] = (float)(a * pm_rng_normal(&r));
            break;
        case PM_INIT_XAVIER:
            out[i] = (float)(sqrt(6 / both) * (2 * pm_rng_uniform(&r) - 1));
            break;
        case PM_INIT_VARIANCE_SCALING:
            out[i] = (float)(sqrt(1.3 * a / in) * pm_rng_truncated(&r));
            break;
        case PM_INIT_VARIANCE_FAN_OUT:
            out[i] = (float)(sqrt(1.3 * a / v->fan_out) * pm_rng_truncated(&r));
            break;
        case PM_INIT_VARIANCE_UNIFORM:
            out[i] = (float)(sqrt(3 * a / in) * (2 * pm_rng_uniform(&r) - 1));
            break;
        case PM_INIT_ORTHOGONAL:
        case PM_INIT_GIVEN:
            break;
        }
    return PM_OK;
}

/* Variables are consecutive in memory. They are written in pieces of about this size, or of an
 * eighth of the total. Given variables are searched for their elements once per piece. */
enum { PIECE = 4 << 20 };

static size_t piece_of(const struct pm_variables *v)
{
    return v->bytes / 8 > PIECE ? round_up(v->bytes / 8) : PIECE;
}

static int write_piece(struct pm_variables *v, size_t begin, size_t end, const char *host)
{
    return end > begin ? pm_buffer_write(v->device, v->values, begin, host, end - begin) : PM_OK;
}

/* Writes in pieces, so that a large variable is not in memory twice. */
int pm_variables_fill(struct pm_variables *v, int index,
                      int (*read)(const void *from, size_t first, size_t count, float *out),
                      const void *from)
{
    int err = PM_OK;
    const size_t size = round_up(bytes_of(&v->list[index])), piece = piece_of(v);
    const size_t count = pm_shape_count(v->list[index].shape), room = size < piece ? size : piece;
    float *host = pm_malloc(room + 1);

    for (size_t at = 0; at < size; at += room) {
        const size_t first = at / sizeof *host, end = (size - at < room ? size - at : room) + at;
        const size_t n = end / sizeof *host < count ? end / sizeof *host - first : count - first;

        PM_TRY(read(from, first, n, host));
        memset(host + n, 0, end - at - n * sizeof *host);
        PM_TRY(write_piece(v, v->offset[index] + at, v->offset[index] + end, (char *)host));
    }
out:
    pm_free(host);
    return err;
}

int pm_variables_init(struct pm_variables *v, uint64_t seed, const float *slot_init)
{
    int err = PM_OK;
    const size_t piece = piece_of(v);
    size_t begin = 0, end = 0, room = 0;
    char *host = NULL;

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < v->count; i++) {
            const size_t size = round_up(bytes_of(&v->list[i]));
            const bool alone = v->list[i].init.kind == PM_INIT_GIVEN && size > piece;

            if (v->list[i].trainable != (pass == 0))
                continue;
            if (alone || end - begin + size > room) {
                PM_TRY(write_piece(v, begin, end, host));
                begin = end = alone ? 0 : v->offset[i];
                room = alone ? 0 : size > piece ? size : piece;
                pm_free(host);
                host = room ? pm_calloc(1, room) : NULL;
            }
            if (alone) {
                PM_TRY(pm_variables_fill(v, i, v->list[i].init.read, v->list[i].init.from));
                continue;
            }
            PM_TRY(pm_variable_initial(&v->list[i], seed, (float *)(void *)(host + end - begin)));
            end += size;
        }
    PM_TRY(write_piece(v, begin, end, host));
    for (int k = 0; k < v->slot_count; k++) {
        float value = slot_init ? slot_init[k] : 0;
        uint32_t word;

        memcpy(&word, &value, sizeof word);
        if (v->trainable_bytes)
            PM_TRY(pm_buffer_fill(v->device, v->slots[k], 0, v->trainable_bytes, word));
    }
out:
    pm_free(host);
    return err;
}

/* ---- averages ----------------------------------------------------------------------------- */

void pm_variables_keep_averages(struct pm_variables *v)
{
    v->average_bytes = v->bytes;
}

int pm_variables_start_averages(struct pm_variables *v)
{
    int err = PM_OK;
    char *host;

    if (v->average_bytes == 0)
        return PM_OK;
    host = pm_malloc(v->bytes);
    PM_TRY(pm_buffer_read(v->device, v->values, 0, host, v->bytes));
    PM_TRY(pm_buffer_write(v->device, v->averages, 0, host, v->bytes));
out:
    pm_free(host);
    return err;
}

struct pm_variables pm_variables_averaged(const struct pm_variables *v)
{
    struct pm_variables a = *v;

    a.values = v->averages;
    a.averages = a.grads = NULL;
    a.average_bytes = a.gradient_bytes = 0;
    a.slot_count = 0;
    return a;
}

/* ---- one variable ----------------------------------------------------------------------- */

int pm_variables_find(const struct pm_variables *v, const char *name)
{
    for (int i = 0; i < v->count; i++)
        if (strcmp(v->list[i].name, name) == 0)
            return i;
    return -1;
}

int pm_variables_read(struct pm_variables *v, int index, int slot, float *dst)
{
    return pm_buffer_read(v->device, slot < 0 ? v->values : v->slots[slot], v->offset[index], dst,
                          bytes_of(&v->list[index]));
}

int pm_variables_write(struct pm_variables *v, int index, int slot, const float *src)
{
    return pm_buffer_write(v->device, slot < 0 ? v->values : v->slots[slot], v->offset[index], src,
                           bytes_of(&v->list[index]));
}
