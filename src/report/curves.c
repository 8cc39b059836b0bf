/* curves: curves.h has the contract. */
#include "report/curves.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- adding ------------------------------------------------------------------------------ */

static void join(struct pm_curve_bin *into, const struct pm_curve_bin *next)
{
    into->last = next->last;
    if (next->lowest < into->lowest)
        into->lowest = next->lowest, into->lowest_at = next->lowest_at;
    if (next->highest > into->highest)
        into->highest = next->highest, into->highest_at = next->highest_at;
    into->sum += next->sum;
    into->count += next->count;
}

/* Doubles the width until there is room. */
static void widen(struct pm_curve *c)
{
    while (c->count == PM_CURVE_BINS) {
        int joined = 0;

        c->width *= 2;
        for (int i = 1; i < c->count; i++) {
            if (c->bins[i].first / c->width == c->bins[joined].first / c->width)
                join(&c->bins[joined], &c->bins[i]);
            else
                c->bins[++joined] = c->bins[i];
        }
        c->count = joined + 1;
    }
}

static void add_value(struct pm_curve *c, uint64_t step, double value)
{
    const struct pm_curve_bin one = { step, step, step, step, value, value, value, 1 };

    if (!isfinite(value)) {
        c->not_finite++;
        return;
    }
    if (c->count > 0 && step < c->last_step)
        return;
    c->last = value;
    c->last_step = step;
    if (c->count > 0 && c->bins[c->count - 1].first / c->width == step / c->width) {
        join(&c->bins[c->count - 1], &one);
        return;
    }
    widen(c);
    if (c->count > 0 && c->bins[c->count - 1].first / c->width == step / c->width)
        join(&c->bins[c->count - 1], &one);
    else
        c->bins[c->count++] = one;
}

static struct pm_curve *find(const struct pm_curves *c, const char *kind, const char *name)
{
    for (int i = 0; i < c->count; i++)
        if (strcmp(c->list[i].kind, kind) == 0 && strcmp(c->list[i].name, name) == 0)
            return &c->list[i];
    return NULL;
}

void pm_curves_add(struct pm_curves *c, const char *kind, const char *name, uint64_t step,
                   double value)
{
    struct pm_curve *curve = find(c, kind, name);

    if (!curve) {
        if (c->count == PM_MAX_CURVES)
            return;
        PM_GROW(c->list, c->count, c->capacity);
        curve = &c->list[c->count++];
        *curve = (struct pm_curve){
            .kind = pm_strdup(kind), .name = pm_strdup(name), .width = 1,
            .bins = pm_malloc(PM_CURVE_BINS * sizeof *curve->bins),
        };
    }
    add_value(curve, step, value);
}

const struct pm_curve *pm_curves_find(const struct pm_curves *c, const char *kind, const char *name)
{
    const struct pm_curve *curve = find(c, kind, name);

    return curve && curve->count > 0 ? curve : NULL;
}

/* ---- reading ----------------------------------------------------------------------------- */

static void read_line(struct pm_curves *c, const char *line, size_t length)
{
    cJSON *json = cJSON_ParseWithLength(line, length);
    const cJSON *step = cJSON_GetObjectItemCaseSensitive(json, "step");
    const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "kind"));
    const cJSON *m;

    if (kind && cJSON_IsNumber(step) && step->valuedouble >= 0 && step->valuedouble < 0x1p53) {
        uint64_t n = (uint64_t)step->valuedouble;

        c->last_step = n > c->last_step ? n : c->last_step;
        cJSON_ArrayForEach(m, json) if (m != step && (cJSON_IsNumber(m) || cJSON_IsNull(m)))
            pm_curves_add(c, kind, m->string, n, cJSON_IsNull(m) ? NAN : m->valuedouble);
    }
    cJSON_Delete(json);
}

/* The whole lines of text; returns the bytes they take. */
static size_t read_lines(struct pm_curves *c, const char *text, size_t size)
{
    size_t at = 0;

    for (const char *end; at < size && (end = memchr(text + at, '\n', size - at)) != NULL;) {
        size_t length = (size_t)(end - text) - at;

        read_line(c, text + at, length);
        at += length + 1;
    }
    return at;
}

static void read_rest(struct pm_curves *c, int fd)
{
    enum { CHUNK = 1 << 20 };
    char *buf = pm_malloc(CHUNK);
    ssize_t n;

    while ((n = pread(fd, buf, CHUNK, (off_t)c->offset)) > 0) {
        size_t used = read_lines(c, buf, (size_t)n);

        if (used == 0 && n < CHUNK)
            break;
        c->offset += used ? used : (size_t)n; /* no metrics line is a megabyte long */
    }
    pm_free(buf);
}

void pm_curves_read(struct pm_curves *c, const char *path)
{
    struct stat st;
    int fd = -1;

    if (!pm_file_exists(path) || pm_file_open(path, &fd, NULL) < 0 || fstat(fd, &st) < 0) {
        pm_curves_free(c);
    } else {
        if (st.st_ino != c->inode || st.st_dev != c->device || (uint64_t)st.st_size < c->offset)
            pm_curves_free(c);
        c->inode = st.st_ino;
        c->device = st.st_dev;
        read_rest(c, fd);
    }
    if (fd >= 0)
        close(fd);
}

void pm_curves_free(struct pm_curves *c)
{
    for (int i = 0; i < c->count; i++) {
        pm_free(c->list[i].kind);
        pm_free(c->list[i].name);
        pm_free(c->list[i].bins);
    }
    pm_free(c->list);
    *c = (struct pm_curves){ 0 };
}

/* ---- what is drawn ----------------------------------------------------------------------- */

int pm_curve_points(const struct pm_curve *c, struct pm_curve_point points[2 * PM_CURVE_BINS])
{
    int n = 0;

    for (int i = 0; i < c->count; i++) {
        const struct pm_curve_bin *b = &c->bins[i];
        const struct pm_curve_point low = { (double)b->lowest_at, b->lowest };
        const struct pm_curve_point high = { (double)b->highest_at, b->highest };

        points[n++] = low.step <= high.step ? low : high;
        if (low.step != high.step)
            points[n++] = low.step <= high.step ? high : low;
    }
    return n;
}

int pm_curve_smooth(const struct pm_curve *c, struct pm_curve_point points[PM_CURVE_BINS])
{
    const double sigma = fmax(1, c->count / 80.0);
    const int reach = (int)(3 * sigma);

    for (int i = 0; i < c->count; i++) {
        double sum = 0, weights = 0;

        for (int k = i < reach ? 0 : i - reach; k < c->count && k <= i + reach; k++) {
            const double w = exp(-0.5 * (k - i) * (k - i) / (sigma * sigma));
            sum += w * c->bins[k].sum / (double)c->bins[k].count;
            weights += w;
        }
        points[i] = (struct pm_curve_point){
            ((double)c->bins[i].first + (double)c->bins[i].last) / 2, sum / weights };
    }
    return c->count;
}

struct pm_curve_point pm_curve_best(const struct pm_curve *c, bool higher)
{
    struct pm_curve_point best = { 0, NAN };

    for (int i = 0; i < c->count; i++) {
        const struct pm_curve_bin *b = &c->bins[i];

        if (higher ? !(b->highest <= best.value) : !(b->lowest >= best.value))
            best = higher ? (struct pm_curve_point){ (double)b->highest_at, b->highest }
                          : (struct pm_curve_point){ (double)b->lowest_at, b->lowest };
    }
    return best;
}
