/* coco_mask: runs of pixels from COCO's polygons and texts.
 *
 * The rules are those of COCO's own program (pycocotools, maskApi.c by Piotr Dollar and Tsung-Yi
 * Lin), because area and overlap depend on each pixel. A polygon is drawn as a line of points in
 * fifths of a pixel. Where the line goes from one column of points to the next across a pixel's
 * centre, it toggles inside and outside for all later pixels. The sorted toggles are the runs. */
#include "data/coco_mask.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OUTLINE = 1 << 26, MOST_DIGITS = 6, FIRST_CHARACTER = 48 };
enum { TILE = 64 }; /* columns that are decoded at once */

void pm_runs_free(struct pm_runs *r)
{
    pm_free(r->run);
    *r = (struct pm_runs){ 0 };
}

static void push(struct pm_runs *r, uint32_t run)
{
    PM_GROW(r->run, r->count, r->capacity);
    r->run[r->count++] = run;
}

static int check_size(int height, int width, const char *where)
{
    if (height >= 1 && width >= 1 && (uint64_t)height * (uint64_t)width <= PM_COCO_PIXELS)
        return PM_OK;
    return pm_fail(PM_EDATA, "%s: a mask of %d x %d pixels; 1..%llu pixels are allowed", where,
                   height, width, (unsigned long long)PM_COCO_PIXELS);
}

/* ---- polygons ------------------------------------------------------------------------------- */

bool pm_coco_scaled(double v, int32_t *out)
{
    const double scaled = PM_COCO_SCALE * v + 0.5;

    if (!(fabs(scaled) <= PM_COCO_MOST_COORDINATE))
        return false;
    *out = (int32_t)scaled;
    return true;
}

/* The line of points so far, and the places where it toggles. */
struct outline {
    int height, width;
    int u, v; /* last point */
    bool begun;
    uint32_t *toggle; /* owned */
    size_t count, capacity;
};

/* Floor and ceiling of n / 5. */
static int fifth_down(int n)
{
    return n >= 0 ? n / PM_COCO_SCALE : -((-n + PM_COCO_SCALE - 1) / PM_COCO_SCALE);
}

static int fifth_up(int n)
{
    return -fifth_down(-n);
}

/* Adds the next point. A pixel's centre is at 5 x + 2 in fifths. */
static void add_point(struct outline *o, int u, int v)
{
    const int was_u = o->u, was_v = o->v;
    const bool begun = o->begun;

    o->u = u, o->v = v;
    o->begun = true;
    if (!begun || u == was_u)
        return;
    const int edge = (u < was_u ? u : u - 1) - 2;
    if (edge < 0 || edge % PM_COCO_SCALE != 0 || edge / PM_COCO_SCALE > o->width - 1)
        return;
    int y = fifth_up((v < was_v ? v : was_v) - 2);
    y = y < 0 ? 0 : y > o->height ? o->height : y;
    PM_GROW(o->toggle, o->count, o->capacity);
    o->toggle[o->count++] = (uint32_t)(edge / PM_COCO_SCALE) * (uint32_t)o->height + (uint32_t)y;
}

/* Draws the line from one corner to the next, one point per step along its longer side. The product
 * is rounded before the sum, as in COCO's program: a fused multiply-add would move points. */
static void add_line(struct outline *o, const int32_t from[2], const int32_t to[2])
{
    const int dx = abs(to[0] - from[0]), dy = abs(to[1] - from[1]);
    const bool flip = (dx >= dy && from[0] > to[0]) || (dx < dy && from[1] > to[1]);
    const int32_t *a = flip ? to : from, *b = flip ? from : to;
    const int steps = dx >= dy ? dx : dy;
    const double slope = dx >= dy ? (double)(b[1] - a[1]) / dx : (double)(b[0] - a[0]) / dy;

    for (int d = 0; d <= steps; d++) {
        const int t = flip ? steps - d : d;
        const volatile double moved = steps ? slope * t : 0;

        if (dx >= dy)
            add_point(o, t + a[0], (int)(a[1] + moved + 0.5));
        else
            add_point(o, (int)(a[0] + moved + 0.5), t + a[1]);
    }
}

static int ascending(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

/* Makes runs of the toggles; two toggles at the same pixel cancel. */
static void close_outline(struct outline *o, struct pm_runs *out)
{
    const uint32_t end = (uint32_t)o->height * (uint32_t)o->width;
    uint32_t before = 0;
    bool join = false;

    PM_GROW(o->toggle, o->count, o->capacity);
    o->toggle[o->count++] = end;
    qsort(o->toggle, o->count, sizeof *o->toggle, ascending);
    for (size_t i = 0; i < o->count; i++) {
        const uint32_t run = o->toggle[i] - before;

        before = o->toggle[i];
        if (join)
            out->run[out->count - 1] += run;
        else if (run > 0 || i == 0)
            push(out, run);
        join = !join && run == 0 && i > 0;
    }
}

int pm_runs_polygon(const int32_t *xy, size_t points, int height, int width, const char *where,
                    struct pm_runs *out)
{
    struct outline o = { .height = height, .width = width };
    uint64_t length = 0;
    int err = PM_OK;

    *out = (struct pm_runs){ .height = height, .width = width };
    PM_TRY(check_size(height, width, where));
    for (size_t i = 0; i < points; i++) {
        const int32_t *a = xy + 2 * i, *b = xy + 2 * ((i + 1) % points);
        const int dx = abs(b[0] - a[0]), dy = abs(b[1] - a[1]);
        length += (uint64_t)(dx > dy ? dx : dy) + 1;
    }
    if (length > MOST_OUTLINE)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: the polygon's outline is %llu fifths of a pixel long, %d are "
                       "allowed: are its coordinates pixels?",
                       where, (unsigned long long)length, MOST_OUTLINE));
    for (size_t i = 0; i < points; i++)
        add_line(&o, xy + 2 * i, xy + 2 * ((i + 1) % points));
    close_outline(&o, out);
out:
    pm_free(o.toggle);
    return err;
}

/* ---- runs and texts ------------------------------------------------------------------------- */

static int check_sum(const struct pm_runs *r, uint64_t sum, const char *where)
{
    const uint64_t pixels = (uint64_t)r->height * (uint64_t)r->width;

    if (sum == pixels)
        return PM_OK;
    return pm_fail(PM_EDATA,
                   "%s: its runs add up to %llu pixels, the picture of %d x %d has %llu: "
                   "the mask is damaged or belongs to another picture",
                   where, (unsigned long long)sum, r->height, r->width, (unsigned long long)pixels);
}

int pm_runs_counts(const uint32_t *run, size_t count, int height, int width, const char *where,
                   struct pm_runs *out)
{
    uint64_t sum = 0;
    int err = PM_OK;

    *out = (struct pm_runs){ .height = height, .width = width };
    PM_TRY(check_size(height, width, where));
    for (size_t i = 0; i < count; i++)
        sum += run[i];
    PM_TRY(check_sum(out, sum, where));
    for (size_t i = 0; i < count; i++)
        push(out, run[i]);
out:
    return err;
}

/* Reads a number: five bits per character, the lowest first; bit 5 continues it, bit 4 of the last
 * character is its sign. */
static int take_number(const char **p, const char *text, const char *where, int64_t *out)
{
    uint64_t bits = 0;
    int digits = 0, c = 0;

    do {
        c = (unsigned char)**p - FIRST_CHARACTER;
        if (c < 0 || c > 63 || digits > MOST_DIGITS)
            return pm_fail(PM_EDATA, "%s: the mask's text %s at character %zu: it is damaged",
                           where,
                           **p == '\0'            ? "ends within a number"
                           : digits > MOST_DIGITS ? "has a number that is too large"
                                                  : "has an unknown character",
                           (size_t)(*p - text) + 1);
        bits |= (uint64_t)(c & 31) << 5 * digits++;
        (*p)++;
    } while (c & 32);
    *out = (int64_t)bits - (c & 16 ? (int64_t)1 << 5 * digits : 0);
    return PM_OK;
}

int pm_runs_text(const char *text, int height, int width, const char *where, struct pm_runs *out)
{
    uint64_t sum = 0;
    int err = PM_OK;

    *out = (struct pm_runs){ .height = height, .width = width };
    PM_TRY(check_size(height, width, where));
    for (const char *p = text; *p;) {
        int64_t v = 0;

        PM_TRY(take_number(&p, text, where, &v));
        if (out->count > 2)
            v += out->run[out->count - 2];
        if (v < 0 || v > (int64_t)PM_COCO_PIXELS)
            PM_TRY(pm_fail(PM_EDATA, "%s: run %zu of the mask has %lld pixels; 0..%llu are allowed",
                           where, out->count + 1, (long long)v,
                           (unsigned long long)PM_COCO_PIXELS));
        sum += (uint64_t)v;
        push(out, (uint32_t)v);
    }
    PM_TRY(check_sum(out, sum, where));
out:
    return err;
}

void pm_runs_print(const struct pm_runs *r, struct pm_str *out)
{
    for (size_t i = 0; i < r->count; i++) {
        int64_t v = (int64_t)r->run[i] - (i > 2 ? (int64_t)r->run[i - 2] : 0);

        for (bool more = true; more;) {
            const int bits = (int)(v & 31);
            v = (v - bits) / 32;
            more = bits & 16 ? v != -1 : v != 0;
            pm_str_bytes(out, &(char){ (char)(bits + (more ? 32 : 0) + FIRST_CHARACTER) }, 1);
        }
    }
}

/* ---- sets of pixels ------------------------------------------------------------------------- */

void pm_runs_unite(struct pm_runs *a, const struct pm_runs *b)
{
    const uint64_t end = (uint64_t)a->height * (uint64_t)a->width;
    struct pm_runs all = { .height = a->height, .width = a->width };
    const struct pm_runs *from[2] = { a, b };
    uint64_t next[2] = { 0 }, at = 0, last = 0; /* next: where the current run ends */
    size_t used[2] = { 0 };
    bool inside = false;

    while (at < end) {
        bool now = false;
        uint64_t to = end;

        for (int k = 0; k < 2; k++) {
            while (used[k] < from[k]->count && next[k] <= at)
                next[k] += from[k]->run[used[k]++];
            now |= used[k] % 2 == 0 && next[k] > at;
            to = next[k] > at && next[k] < to ? next[k] : to;
        }
        if (now != inside) {
            push(&all, (uint32_t)(at - last));
            last = at;
            inside = now;
        }
        at = to;
    }
    push(&all, (uint32_t)(end - last));
    pm_free(a->run);
    *a = all;
}

/* Whether a part of `columns` columns has a pixel above 0. */
static bool has_pixel(const uint8_t *pixels, size_t height, size_t columns, size_t width)
{
    for (size_t y = 0; y < height; y++) {
        uint8_t any = 0;

        for (size_t x = 0; x < columns; x++)
            any |= pixels[y * width + x];
        if (any)
            return true;
    }
    return false;
}

/* Sets to[x][y] = from[y][x]. The rows of from and to are so many bytes apart. Blocks keep both
 * sides in the processor's cache. */
static void transpose(const uint8_t *from, size_t rows, size_t columns, size_t from_apart,
                      uint8_t *to, size_t to_apart)
{
    for (size_t first_y = 0; first_y < rows; first_y += TILE)
        for (size_t first_x = 0; first_x < columns; first_x += TILE) {
            const size_t end_y = first_y + TILE < rows ? first_y + TILE : rows;
            const size_t end_x = first_x + TILE < columns ? first_x + TILE : columns;

            for (size_t x = first_x; x < end_x; x++)
                for (size_t y = first_y; y < end_y; y++)
                    to[x * to_apart + y] = from[y * from_apart + x];
        }
}

void pm_runs_encode(const uint8_t *pixels, int height, int width, struct pm_runs *out)
{
    const size_t rows = (size_t)height;
    uint8_t *tile = pm_malloc(TILE * rows);
    uint32_t run = 0;
    bool inside = false;

    *out = (struct pm_runs){ .height = height, .width = width };
    for (size_t x = 0; x < (size_t)width; x += TILE) {
        const size_t columns = x + TILE < (size_t)width ? TILE : (size_t)width - x;

        if (!inside && !has_pixel(pixels + x, rows, columns, (size_t)width)) {
            run += (uint32_t)(columns * rows);
            continue;
        }
        transpose(pixels + x, rows, columns, (size_t)width, tile, rows);
        for (size_t i = 0; i < columns * rows; i++, run++)
            if ((tile[i] > 0) != inside) {
                push(out, run);
                run = 0;
                inside = !inside;
            }
    }
    push(out, run);
    pm_free(tile);
}

struct pm_runs pm_runs_copy(struct pm_arena *a, const struct pm_runs *from)
{
    return (struct pm_runs){ .height = from->height, .width = from->width,
                             .run = pm_arena_copy(a, from->run, from->count * sizeof *from->run),
                             .count = from->count, .capacity = from->count };
}

/* Appends pixels inside the object after a gap; *done: pixels so far. */
static void push_inside(struct pm_runs *r, uint64_t from, uint64_t count, uint64_t *done)
{
    if (from == *done && r->count > 0) {
        r->run[r->count - 1] += (uint32_t)count;
    } else {
        push(r, (uint32_t)(from - *done));
        push(r, (uint32_t)count);
    }
    *done = from + count;
}

void pm_runs_move(const struct pm_runs *r, int y, int x, int height, int width,
                  struct pm_runs *out)
{
    const uint64_t rows = (uint64_t)r->height, pixels = (uint64_t)height * (uint64_t)width;
    uint64_t done = 0, begin = 0;

    *out = (struct pm_runs){ .height = height, .width = width };
    for (size_t i = 0; i < r->count; begin += r->run[i++]) {
        const uint64_t end = begin + r->run[i];

        for (uint64_t at = begin, n; i % 2 && at < end; at += n) { /* column by column */
            const uint64_t row = at % rows;

            n = end - at < rows - row ? end - at : rows - row;
            push_inside(out, ((uint64_t)x + at / rows) * (uint64_t)height + (uint64_t)y + row, n,
                        &done);
        }
    }
    if (done < pixels)
        push(out, (uint32_t)(pixels - done));
}

/* Fills a few columns at a time: runs go down a column, the pixels are stored by rows. */
void pm_runs_decode(const struct pm_runs *r, uint8_t *pixels)
{
    const size_t height = (size_t)r->height, width = (size_t)r->width;
    uint8_t *tile = pm_malloc(TILE * height);
    size_t i = 0, begin = 0; /* the current run and its first pixel */

    memset(pixels, 0, height * width);
    for (size_t x = 0; x < width; x += TILE) {
        const size_t columns = x + TILE < width ? TILE : width - x;
        const size_t first = x * height, end = first + columns * height;
        bool any = false;

        for (; i < r->count && begin < end; begin += r->run[i++]) {
            const size_t last = begin + r->run[i], to = last < end ? last : end;
            const size_t from = begin > first ? begin : first;

            if (i % 2 && from < to) {
                if (!any)
                    memset(tile, 0, columns * height);
                memset(tile + (from - first), 1, to - from);
                any = true;
            }
            if (last > end)
                break; /* the run continues in the next columns */
        }
        if (any)
            transpose(tile, columns, height, height, pixels + x, width);
    }
    pm_free(tile);
}

uint64_t pm_runs_area(const struct pm_runs *r)
{
    uint64_t area = 0;

    for (size_t i = 1; i < r->count; i += 2)
        area += r->run[i];
    return area;
}

void pm_runs_box(const struct pm_runs *r, uint32_t box[4])
{
    const uint32_t height = (uint32_t)r->height;
    uint32_t least_x = UINT32_MAX, least_y = UINT32_MAX, most_x = 0, most_y = 0, at = 0;

    memset(box, 0, 4 * sizeof *box);
    for (size_t i = 0; i < r->count; at += r->run[i++]) {
        if (i % 2 == 0 || r->run[i] == 0)
            continue;
        const uint32_t last = at + r->run[i] - 1, x = at / height, end_x = last / height;
        const bool whole = end_x > x; /* it goes on in the next column */
        const uint32_t y = whole ? 0 : at % height, end_y = whole ? height - 1 : last % height;

        least_x = x < least_x ? x : least_x;
        least_y = y < least_y ? y : least_y;
        most_x = end_x > most_x ? end_x : most_x;
        most_y = end_y > most_y ? end_y : most_y;
    }
    if (least_x == UINT32_MAX)
        return;
    box[0] = least_x, box[1] = least_y;
    box[2] = most_x - least_x + 1, box[3] = most_y - least_y + 1;
}

/* Whether the boxes x, y, width, height have a pixel in common. */
static bool boxes_meet(const uint32_t a[4], const uint32_t b[4])
{
    return a[0] < b[0] + b[2] && b[0] < a[0] + a[2] && a[1] < b[1] + b[3] && b[1] < a[1] + a[3];
}

/* Number of pixels that are in both masks. */
static uint64_t intersection(const struct pm_runs *a, const struct pm_runs *b)
{
    const struct pm_runs *of[2] = { a, b };
    uint64_t end[2] = { 0 }, at = 0, both = 0; /* end: of the current run */
    size_t used[2] = { 0 };

    for (;;) {
        for (int k = 0; k < 2; k++)
            while (used[k] < of[k]->count && end[k] <= at)
                end[k] += of[k]->run[used[k]++];
        const uint64_t to = end[0] < end[1] ? end[0] : end[1];

        if (to == at) /* the last pixel */
            return both;
        both += used[0] % 2 == 0 && used[1] % 2 == 0 ? to - at : 0;
        at = to;
    }
}

double pm_runs_overlap(const struct pm_runs *d, const struct pm_runs *truth, bool crowd)
{
    uint32_t box[2][4];

    pm_runs_box(d, box[0]);
    pm_runs_box(truth, box[1]);
    if (!boxes_meet(box[0], box[1]))
        return 0;
    const uint64_t both = intersection(d, truth), area = pm_runs_area(d);

    if (both == 0)
        return 0;
    return (double)both / (double)(crowd ? area : area + pm_runs_area(truth) - both);
}
