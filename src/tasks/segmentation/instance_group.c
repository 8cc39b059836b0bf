/* instance_group: Panoptic-DeepLab's grouping on the host. Each pixel searches its nearest centre
 * only among possible ones. The picture is divided into cells. A cell's list holds the centres
 * whose least distance to the cell is at most the smallest of all centres' largest distances.
 * Places outside of the picture search all centres. Distances are float32, (y + dy - cy)^2 + (x +
 * dx - cx)^2, and lists keep the centres' order, so the result equals that of searching all
 * centres. */
#include "tasks/segmentation/instance_group.h"

#include <pumice/thread.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELL = 32, BLOCK = 72 };
static const float background = 3000; /* seed4's */

static bool *things_of(const struct pm_group_options *o, int classes)
{
    bool *out = pm_calloc((size_t)classes + 1, sizeof *out);

    for (int i = 0; i < o->things.count; i++)
        if (o->things.v[i] < classes)
            out[o->things.v[i]] = true;
    return out;
}

/* ---- centres ----------------------------------------------------------------------------- */

static float heat_at(const struct pm_group_input *in, int y, int x)
{
    return in->heat[(size_t)y * (size_t)in->stride + (size_t)x];
}

struct peaks {
    const struct pm_group_input *in;
    float threshold;
    int reach;
    bool *is; /* [height][width] */
};

static bool is_peak(const struct peaks *p, int y, int x)
{
    const struct pm_group_input *in = p->in;
    const float heat = heat_at(in, y, x);
    const int y0 = y > p->reach ? y - p->reach : 0, x0 = x > p->reach ? x - p->reach : 0;
    const int y1 = y + p->reach < in->height ? y + p->reach : in->height - 1;
    const int x1 = x + p->reach < in->width ? x + p->reach : in->width - 1;

    if (!(heat > p->threshold && heat > 0))
        return false;
    for (int v = y0; v <= y1; v++)
        for (int u = x0; u <= x1; u++)
            if (heat_at(in, v, u) > heat)
                return false;
    return true;
}

static void peak_rows(void *ctx, size_t begin, size_t end)
{
    const struct peaks *p = ctx;
    const size_t width = (size_t)p->in->width;

    for (size_t y = begin; y < end; y++)
        for (size_t x = 0; x < width; x++)
            p->is[y * width + x] = is_peak(p, (int)y, (int)x);
}

/* Compares by heat, hottest first, then by rows. */
static int by_heat(const void *a, const void *b)
{
    const struct pm_group_center *x = a, *y = b;

    if (x->heat != y->heat)
        return x->heat < y->heat ? 1 : -1;
    return x->y != y->y ? (x->y > y->y) - (x->y < y->y) : (x->x > y->x) - (x->x < y->x);
}

/* Keeps the centres above the top_k-th heat. */
static size_t above_kth(struct pm_group_center *c, size_t count, int top_k)
{
    struct pm_group_center *sorted;
    size_t left = 0;
    float kth;

    if (count < (size_t)top_k)
        return count;
    sorted = pm_malloc(count * sizeof *sorted);
    memcpy(sorted, c, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_heat);
    kth = sorted[top_k - 1].heat;
    pm_free(sorted);
    for (size_t i = 0; i < count; i++)
        if (c[i].heat > kth)
            c[left++] = c[i];
    return left;
}

static size_t peaks_of(const struct pm_group_options *o, const struct pm_group_input *in,
                       struct pm_group_center **out)
{
    const size_t pixels = (size_t)in->height * (size_t)in->width;
    struct peaks p = { in, isnan(o->threshold) ? 0.1f : o->threshold, o->nms_kernel / 2,
                       pm_malloc(pixels) };
    size_t count = 0, capacity = 0;

    pm_parallel((size_t)in->height, 1, peak_rows, &p);
    for (size_t i = 0; i < pixels; i++) {
        const int y = (int)(i / (size_t)in->width), x = (int)(i % (size_t)in->width);

        if (!p.is[i])
            continue;
        PM_GROW(*out, count, capacity);
        (*out)[count++] = (struct pm_group_center){ y, x, heat_at(in, y, x) };
    }
    pm_free(p.is);
    return above_kth(*out, count, o->top_k);
}

/* seed4: returns the hottest pixel of a block, the first of equal ones. */
static struct pm_group_center block_peak(const struct pm_group_input *in, const bool *things,
                                         int y0, int x0, float scale)
{
    struct pm_group_center best = { .heat = 0 };

    for (int y = y0; y < y0 + BLOCK && y < in->height; y++)
        for (int x = x0; x < x0 + BLOCK && x < in->width; x++) {
            const float heat = heat_at(in, y, x) * scale;

            if (heat > best.heat && things[in->classes[(size_t)y * (size_t)in->stride + (size_t)x]])
                best = (struct pm_group_center){ y, x, heat };
        }
    return best;
}

static size_t block_peaks(const struct pm_group_options *o, const struct pm_group_input *in,
                          struct pm_group_center **out)
{
    const float threshold = isnan(o->threshold) ? 127.5f : o->threshold;
    bool *things = things_of(o, in->num_classes);
    size_t count = 0, capacity = 0;
    float largest = 0;

    for (int y = 0; y < in->height; y++)
        for (int x = 0; x < in->width; x++)
            largest = heat_at(in, y, x) > largest ? heat_at(in, y, x) : largest;
    for (int y = 0; y < in->height && largest > 0; y += BLOCK)
        for (int x = 0; x < in->width; x += BLOCK) {
            const struct pm_group_center c = block_peak(in, things, y, x, 255 / largest);

            if (!(c.heat > 0 && c.heat >= threshold))
                continue;
            PM_GROW(*out, count, capacity);
            (*out)[count++] = c;
        }
    if (count)
        qsort(*out, count, sizeof **out, by_heat);
    pm_free(things);
    return count < (size_t)o->top_k ? count : (size_t)o->top_k;
}

int pm_group_centers(const struct pm_group_options *o, const struct pm_group_input *in,
                     struct pm_group_center **out)
{
    *out = NULL;
    return (int)(o->mode == PM_INSTANCE_SEED4 ? block_peaks(o, in, out) : peaks_of(o, in, out));
}

/* ---- the nearest centre ------------------------------------------------------------------ */

struct nearest {
    const struct pm_group_options *o;
    const struct pm_group_input *in;
    const struct pm_group_center *centers;
    int count;
    bool *things;
    float *y, *x;         /* of the centres */
    int cells;            /* number of cells in a row */
    int *first;           /* [rows of cells * cells + 1]: where each cell's list begins */
    int *list;            /* centres, ascending */
    int32_t *out;
};

static double reach_of(int at, int cell, bool farthest)
{
    const double low = (double)cell * CELL - at, high = low + CELL;

    if (farthest)
        return fabs(low) > fabs(high) ? fabs(low) : fabs(high);
    return low > 0 ? low : high < 0 ? -high : 0;
}

static double distance_to(const struct pm_group_center *c, int row, int column, bool farthest)
{
    const double y = reach_of(c->y, row, farthest), x = reach_of(c->x, column, farthest);

    return y * y + x * x;
}

/* Lists the centres that may be nearest to some place of this cell. The margin is far above
 * float32's rounding. */
static void list_cell(struct nearest *n, int row, int column, size_t *length, size_t *capacity)
{
    double least = INFINITY;

    for (int i = 0; i < n->count; i++)
        least = fmin(least, distance_to(&n->centers[i], row, column, true));
    least = least * (1 + 1e-5) + 1e-3;
    for (int i = 0; i < n->count; i++) {
        if (distance_to(&n->centers[i], row, column, false) > least)
            continue;
        PM_GROW(n->list, *length, *capacity);
        n->list[(*length)++] = i;
    }
}

static void list_cells(struct nearest *n)
{
    const int rows = (n->in->height + CELL - 1) / CELL;
    size_t length = 0, capacity = 0;

    n->cells = (n->in->width + CELL - 1) / CELL;
    n->first = pm_malloc(((size_t)rows * (size_t)n->cells + 1) * sizeof *n->first);
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < n->cells; column++) {
            n->first[row * n->cells + column] = (int)length;
            list_cell(n, row, column, &length, &capacity);
        }
    n->first[rows * n->cells] = (int)length;
}

static int nearest_of_all(const struct nearest *n, float y, float x)
{
    float least = INFINITY;
    int best = 0;

    for (int i = 0; i < n->count; i++) {
        const float v = y - n->y[i], u = x - n->x[i], d = v * v + u * u;

        if (d < least)
            least = d, best = i;
    }
    return best;
}

static int nearest_to(const struct nearest *n, float y, float x)
{
    const struct pm_group_input *in = n->in;
    float least = INFINITY;
    int best = 0;

    if (!(y >= 0 && x >= 0 && y < (float)in->height && x < (float)in->width))
        return nearest_of_all(n, y, x);
    const int *cell = n->first + (int)y / CELL * n->cells + (int)x / CELL;
    for (int k = cell[0]; k < cell[1]; k++) {
        const int i = n->list[k];
        const float v = y - n->y[i], u = x - n->x[i], d = v * v + u * u;

        if (d < least)
            least = d, best = i;
    }
    return best;
}

/* seed4: returns 1 + index of the centre, or 0. */
static int nearest_by_lengths(const struct nearest *n, int y, int x, const float *offset)
{
    float least = background;
    int best = 0;

    for (int i = 0; i < n->count; i++) {
        const float v = fabsf(n->y[i] - (float)y) - offset[0],
                    u = fabsf(n->x[i] - (float)x) - offset[1];
        const float d = v * v + u * u;

        if (d < least)
            least = d, best = 1 + i;
    }
    return best;
}

static void assign_rows(void *ctx, size_t begin, size_t end)
{
    const struct nearest *n = ctx;
    const struct pm_group_input *in = n->in;

    for (size_t y = begin; y < end; y++) {
        const size_t row = y * (size_t)in->stride;
        int32_t *out = n->out + y * (size_t)in->width;

        for (int x = 0; x < in->width; x++) {
            const size_t at = row + (size_t)x;
            const float *offset = in->offset + 2 * at;

            if (!n->things[in->classes[at]])
                out[x] = 0;
            else if (n->o->mode == PM_INSTANCE_SEED4)
                out[x] = nearest_by_lengths(n, (int)y, x, offset);
            else
                out[x] = 1 + nearest_to(n, (float)y + offset[0], (float)x + offset[1]);
        }
    }
}

void pm_group_assign(const struct pm_group_options *o, const struct pm_group_input *in,
                     const struct pm_group_center *centers, int count, int32_t *out)
{
    struct nearest n = { .o = o, .in = in, .centers = centers, .count = count, .out = out };

    if (count == 0) {
        memset(out, 0, (size_t)in->height * (size_t)in->width * sizeof *out);
        return;
    }
    n.things = things_of(o, in->num_classes);
    n.y = pm_malloc((size_t)count * sizeof *n.y);
    n.x = pm_malloc((size_t)count * sizeof *n.x);
    for (int i = 0; i < count; i++)
        n.y[i] = (float)centers[i].y, n.x[i] = (float)centers[i].x;
    if (o->mode != PM_INSTANCE_SEED4)
        list_cells(&n);
    pm_parallel((size_t)in->height, 1, assign_rows, &n);
    pm_free(n.things);
    pm_free(n.y);
    pm_free(n.x);
    pm_free(n.first);
    pm_free(n.list);
}

/* ---- segments ---------------------------------------------------------------------------- */

struct merging {
    const struct pm_group_options *o;
    const struct pm_group_input *in;
    const int32_t *number; /* of the nearest centre, from 1, or 0 */
    int centers;
    bool *things;
    int *pixels;           /* [1 + centers][classes] */
    int *segment;          /* [1 + centers] things, [classes] stuff: index in out, or -1 */
    double *sum;           /* of probabilities, per segment */
    struct pm_segment_map *out;
};

static int32_t class_at(const struct pm_group_input *in, int y, int x)
{
    return in->classes[(size_t)y * (size_t)in->stride + (size_t)x];
}

static void count_pixels(struct merging *m)
{
    const struct pm_group_input *in = m->in;
    const int32_t *number = m->number;

    for (int y = 0; y < in->height; y++)
        for (int x = 0; x < in->width; x++, number++)
            m->pixels[(size_t)*number * (size_t)in->num_classes + (size_t)class_at(in, y, x)]++;
}

static struct pm_segment *new_segment(struct merging *m, int label, int area)
{
    struct pm_segment *s = &m->out->segments[m->out->count++];

    *s = (struct pm_segment){ .label = label, .id = label * m->o->label_divisor, .area = area };
    return s;
}

static void add_things(struct merging *m, const struct pm_group_center *centers)
{
    const int classes = m->in->num_classes;
    int *counter = pm_calloc((size_t)classes, sizeof *counter);

    for (int i = 1; i <= m->centers; i++) {
        const int *pixels = m->pixels + (size_t)i * (size_t)classes;
        int best = 0, area = 0;

        for (int c = 0; c < classes; c++) {
            area += pixels[c];
            best = pixels[c] > pixels[best] ? c : best;
        }
        m->segment[i] = -1;
        if (area == 0)
            continue;
        m->segment[i] = m->out->count;
        struct pm_segment *s = new_segment(m, best, area);
        s->id += ++counter[best];
        s->thing = true;
        s->heat = centers[i - 1].heat;
        s->center_y = centers[i - 1].y, s->center_x = centers[i - 1].x;
    }
    pm_free(counter);
}

static void add_stuff(struct merging *m, int *segment)
{
    for (int c = 0; c < m->in->num_classes; c++) {
        segment[c] = -1;
        if (m->things[c] || m->pixels[c] == 0 || m->pixels[c] < m->o->stuff_area)
            continue;
        segment[c] = m->out->count;
        new_segment(m, c, m->pixels[c]);
    }
}

/* Fills in the pixels' ids and the sums for the scores. */
static void fill(struct merging *m, const int *stuff)
{
    const struct pm_group_input *in = m->in;
    const int32_t *number = m->number;
    int32_t *id = m->out->map;

    for (int y = 0; y < in->height; y++)
        for (int x = 0; x < in->width; x++, number++, id++) {
            const size_t at = (size_t)y * (size_t)in->stride + (size_t)x;
            const int s = *number ? m->segment[*number] : stuff[in->classes[at]];

            *id = s < 0 ? PM_VOID : m->out->segments[s].id;
            if (s >= 0 && in->probabilities)
                m->sum[s] += (double)in->probabilities[at * (size_t)in->num_classes +
                                                       (size_t)m->out->segments[s].label];
        }
    for (int s = 0; s < m->out->count; s++)
        m->out->segments[s].score = m->sum[s] / m->out->segments[s].area;
}

void pm_group_segments(const struct pm_group_options *o, const struct pm_group_input *in,
                       struct pm_segment_map *out)
{
    const size_t pixels = (size_t)in->height * (size_t)in->width, classes = (size_t)in->num_classes;
    struct pm_group_center *centers = NULL;
    int32_t *number = pm_malloc(pixels * sizeof *number);
    struct merging m = { .o = o, .in = in, .number = number, .out = out };

    m.centers = pm_group_centers(o, in, &centers);
    pm_group_assign(o, in, centers, m.centers, number);
    const size_t most = (size_t)m.centers + 1 + classes;
    *out = (struct pm_segment_map){ .height = in->height, .width = in->width,
                                 .map = pm_malloc(pixels * sizeof *out->map),
                                 .segments = pm_calloc(most, sizeof *out->segments) };
    m.things = things_of(o, in->num_classes);
    m.pixels = pm_calloc(((size_t)m.centers + 1) * classes, sizeof *m.pixels);
    m.segment = pm_malloc(most * sizeof *m.segment);
    m.sum = pm_calloc(most, sizeof *m.sum);
    count_pixels(&m);
    add_things(&m, centers);
    add_stuff(&m, m.segment + m.centers + 1);
    fill(&m, m.segment + m.centers + 1);
    pm_free(m.things);
    pm_free(m.pixels);
    pm_free(m.segment);
    pm_free(m.sum);
    pm_free(number);
    pm_free(centers);
}

void pm_segment_map_free(struct pm_segment_map *p)
{
    pm_free(p->map);
    pm_free(p->segments);
    *p = (struct pm_segment_map){ 0 };
}
