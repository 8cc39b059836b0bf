/* kernel: shapes, parsing of a row's buffers, and the default choice of dispatches. */
#include <pumice/kernel.h>
#include <pumice/rng.h>

#include <assert.h>
#include <string.h>

size_t pm_type_size(enum pm_type t)
{
    return t == PM_U8 ? 1 : 4;
}

size_t pm_shape_count(struct pm_shape s)
{
    size_t n = 1;

    for (int i = 0; i < s.rank; i++)
        n *= (size_t)s.dim[i];
    return n;
}

bool pm_shape_equal(struct pm_shape a, struct pm_shape b)
{
    return a.rank == b.rank && memcmp(a.dim, b.dim, sizeof a.dim[0] * (size_t)a.rank) == 0;
}

char *pm_shape_text(struct pm_shape s, char buf[64])
{
    int n = 0;

    if (s.rank == 0)
        snprintf(buf, 64, "scalar");
    for (int i = 0; i < s.rank && n < 64; i++)
        n += snprintf(buf + n, 64 - (size_t)n, "%s%d", i ? "x" : "", s.dim[i]);
    return buf;
}

int pm_kernel_bufs(const struct pm_kernel *k, struct pm_buf_spec spec[PM_MAX_BUFS])
{
    int count = 0;

    for (const char *s = k->bufs; *s;) {
        struct pm_buf_spec *b = &spec[count++];
        size_t length;

        assert(count <= PM_MAX_BUFS);
        memset(b, 0, sizeof *b);
        b->access = *s++;
        assert(strchr("rwutz", b->access));
        if (*s == '?')
            b->optional = true, s++;
        assert(*s == ':');
        s++;
        length = strcspn(s, " ");
        assert(length > 0 && length < sizeof b->name);
        memcpy(b->name, s, length);
        s += length;
        s += strspn(s, " ");
    }
    return count;
}

int pm_call_bufs(const struct pm_kernel *k, const void *params,
                 struct pm_buf_spec spec[PM_MAX_BUFS])
{
    int count = pm_kernel_bufs(k, spec), accumulate = 1;

    if (k->accumulate)
        memcpy(&accumulate, (const char *)params + k->accumulate - 1, sizeof accumulate);
    for (int i = 0; i < count && !accumulate; i++)
        if (spec[i].access == 'u')
            spec[i].access = 'w';
    return count;
}

static int find_buf(const struct pm_buf_spec *spec, int count, const char *name, size_t length)
{
    for (int i = 0; i < count; i++)
        if (strncmp(spec[i].name, name, length) == 0 && spec[i].name[length] == 0)
            return i;
    assert(!"the row's inplace names a buffer that it does not have");
    return -1;
}

int pm_kernel_inplace(const struct pm_kernel *k, int pair[PM_MAX_INPLACE][2])
{
    struct pm_buf_spec spec[PM_MAX_BUFS];
    int bufs = pm_kernel_bufs(k, spec), count = 0;

    for (const char *s = k->inplace; s && *s; count++) {
        size_t left = strcspn(s, "="), right = strcspn(s + left + 1, ",");

        assert(count < PM_MAX_INPLACE);
        pair[count][0] = find_buf(spec, bufs, s, left);
        pair[count][1] = find_buf(spec, bufs, s + left + 1, right);
        s += left + 1 + right;
        s += *s == ',';
    }
    return count;
}

bool pm_pick_elements(const char *shader, uint32_t size, size_t count, struct pm_picks *out)
{
    size_t groups = (count + size - 1) / size;

    memset(out, 0, sizeof *out);
    out->count = 1;
    out->variant = shader;
    out->d[0].shader = shader;
    out->d[0].spec[0] = size;
    out->d[0].spec[1] = out->d[0].spec[2] = 1;
    out->d[0].specs = 3;
    out->d[0].groups[0] = (uint32_t)(groups < 1 ? 1 : groups > 65535 ? 65535 : groups);
    out->d[0].groups[1] = out->d[0].groups[2] = 1;
    return true;
}

/* ---- values of inputs ----------------------------------------------------------------------- */

static float between(struct pm_rng *r, double low, double high)
{
    return (float)(low + (high - low) * pm_rng_uniform(r));
}

/* Two different sides of a box along each axis. */
static void draw_box(struct pm_values v, struct pm_rng *r, float *box)
{
    for (int d = 0; d < 2; d++) {
        const double least = v.low + (v.high - v.low) * 0.9 * pm_rng_uniform(r);
        const double room = v.high - least;

        box[d] = (float)least;
        box[d + 2] = (float)(least + room * (0.1 + 0.9 * pm_rng_uniform(r)));
    }
}

static int32_t draw_integer(struct pm_values v, struct pm_rng *r)
{
    if (v.pattern == PM_PATTERN_CHOSEN && pm_rng_int(r, 0, 31) > 0)
        return -1;
    return (int32_t)pm_rng_int(r, (int64_t)v.low, (int64_t)v.high);
}

void pm_values_draw(struct pm_values v, enum pm_type type, size_t count, struct pm_rng *r,
                    void *out)
{
    if (type == PM_F32 && v.pattern == PM_PATTERN_BOXES) {
        for (size_t i = 0; i + 3 < count; i += 4)
            draw_box(v, r, (float *)out + i);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (type == PM_F32)
            ((float *)out)[i] = between(r, v.low, v.high);
        else if (type == PM_U8)
            ((uint8_t *)out)[i] =
                (uint8_t)pm_rng_int(r, (int64_t)v.low, v.high < 255 ? (int64_t)v.high : 255);
        else
            ((int32_t *)out)[i] = draw_integer(v, r);
}
