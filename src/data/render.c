/* render: applies a geometry's moves to a picture.
 *
 * Moves are combined if possible: an inner window of the source, up to two bilinear resizes, a
 * window (with padding), a mirror. Then only the rows and columns in the window are computed, row
 * by row. Other sequences take several rounds; each round writes float values.
 *
 * Bilinear: element i of out comes from src = i * step in float32. step is in / out, or (in - 1) /
 * (out - 1) with aligned corners. The last element is repeated at the end. */
#include <string.h>

#include "data/render.h"

struct pm_view8 pm_view8_of(const struct pm_image8 *im)
{
    return (struct pm_view8){ im->pixels, im->height, im->width, im->channels,
                              (size_t)im->width * (size_t)im->channels };
}

struct pm_view8 pm_view_crop(struct pm_view8 v, int y, int x, int height, int width)
{
    v.pixels += (size_t)y * v.stride + (size_t)x * (size_t)v.channels;
    v.height = height;
    v.width = width;
    return v;
}

/* ---- bilinear ------------------------------------------------------------------------------ */

struct pm_lerp pm_lerp_at(int i, float step, int in, int stride)
{
    const float src = (float)i * step;
    const int lo = (int)src < in - 1 ? (int)src : in - 1;
    const int hi = lo + 1 < in ? lo + 1 : in - 1;
    return (struct pm_lerp){ lo * stride, hi * stride, src - (float)lo };
}

static float step_of(enum pm_resize method, int in, int out)
{
    return method == PM_RESIZE_ALIGNED ? pm_aligned_step(in, out) : (float)in / (float)out;
}

/* Rows of bytes or of float values. */
struct source {
    const uint8_t *bytes; /* or NULL */
    const float *values;
    int height, width;
    size_t stride; /* elements per row */
};

/* One resize, row by row, of a source or of the stage below. Two input rows, resized to the new
 * columns, are kept; each is replaced by the next row of the same parity. So neighbouring output
 * rows share them. */
struct stage {
    struct stage *below; /* NULL: source */
    const struct source *source;
    int in_height, values; /* values per row: columns x channels */
    float step;
    struct pm_lerp *taps; /* owned; [values]; NULL: copies columns from `first` on */
    size_t first;
    float *row[2], *in; /* owned; resized rows; one row of the stage below */
    int held[2];        /* input row numbers of row[] */
};

static void stage_row(struct stage *s, int y, float *out);

static const float *across(struct stage *s, int y)
{
    const struct source *from = s->source;
    float *out = s->row[y & 1];

    if (s->held[y & 1] == y)
        return out;
    s->held[y & 1] = y;
    if (from && from->bytes) {
        const uint8_t *in = from->bytes + (size_t)y * from->stride;
        for (int i = 0; i < s->values; i++) {
            const struct pm_lerp t = s->taps[i];
            out[i] = (float)in[t.lo] + (float)(in[t.hi] - in[t.lo]) * t.f;
        }
        return out;
    }
    if (s->below)
        stage_row(s->below, y, s->in);
    const float *in = s->below ? s->in : from->values + (size_t)y * from->stride;
    for (int i = 0; i < s->values; i++) {
        const struct pm_lerp t = s->taps[i];
        out[i] = in[t.lo] + (in[t.hi] - in[t.lo]) * t.f;
    }
    return out;
}

static void copy_row(const struct stage *s, int y, float *out)
{
    const struct source *from = s->source;
    const size_t at = (size_t)y * from->stride + s->first;
    const int values = s->values;

    if (!from->bytes) {
        memcpy(out, from->values + at, (size_t)values * sizeof *out);
        return;
    }
    const uint8_t *restrict in = from->bytes + at;
    float *restrict to = out;
    for (int i = 0; i < values; i++)
        to[i] = in[i];
}

static void stage_row(struct stage *s, int y, float *out)
{
    if (!s->taps) {
        copy_row(s, y, out);
        return;
    }
    const struct pm_lerp v = pm_lerp_at(y, s->step, s->in_height, 1);
    const float *top = across(s, v.lo), *bottom = across(s, v.hi);

    for (int i = 0; i < s->values; i++)
        out[i] = top[i] + (bottom[i] - top[i]) * v.f;
}

/* Returns the taps of columns first .. first + cols - 1 of a row resized from in_width to width. If
 * mirrored, the last column comes first. The source's rows begin at column in_first. */
static struct pm_lerp *taps_of(float step, int in_width, int first, int cols, bool mirror,
                               int in_first, int channels)
{
    struct pm_lerp *taps = pm_malloc((size_t)cols * (size_t)channels * sizeof *taps);

    for (int i = 0; i < cols; i++) {
        const struct pm_lerp t = pm_lerp_at(first + (mirror ? cols - 1 - i : i), step, in_width, 1);
        for (int c = 0; c < channels; c++)
            taps[i * channels + c] = (struct pm_lerp){ (t.lo - in_first) * channels + c,
                                                       (t.hi - in_first) * channels + c, t.f };
    }
    return taps;
}

static void stage_begin(struct stage *s, int in_height, float step, struct pm_lerp *taps,
                        int values)
{
    s->in_height = in_height;
    s->step = step;
    s->taps = taps;
    s->values = values;
    s->held[0] = s->held[1] = -1;
    for (int i = 0; i < 2; i++)
        s->row[i] = pm_malloc((size_t)values * sizeof(float));
    if (s->below)
        s->in = pm_malloc((size_t)s->below->values * sizeof(float));
}

static void stage_end(struct stage *s)
{
    pm_free(s->taps);
    pm_free(s->row[0]);
    pm_free(s->row[1]);
    pm_free(s->in);
}

/* ---- one round ----------------------------------------------------------------------------- */

/* Moves that are applied together. */
struct round {
    struct source source;
    int channels;
    const struct pm_move *resize[2]; /* or NULL */
    struct pm_move window;           /* in the picture after the resizes */
    bool mirror;
    /* The part of the window that shows the picture: its first row and column in the window, and
     * their numbers. */
    int top, left, rows, cols;
};

static int between(int v, int least, int most)
{
    return v < least ? least : v > most ? most : v;
}

static bool is_inside(const struct pm_move *m, int height, int width)
{
    return m->y >= 0 && m->x >= 0 && m->y + m->height <= height && m->x + m->width <= width;
}

static bool is_lerp(const struct pm_move *m)
{
    return m->kind == PM_MOVE_RESIZE &&
           (m->method == PM_RESIZE_BILINEAR || m->method == PM_RESIZE_ALIGNED);
}

static void enter(struct source *s, const struct pm_move *m, int channels)
{
    const size_t first = (size_t)m->y * s->stride + (size_t)m->x * (size_t)channels;

    if (s->bytes)
        s->bytes += first;
    else
        s->values += first;
    s->height = m->height;
    s->width = m->width;
}

static struct source source_of(const struct pm_canvas *c)
{
    if (c->values)
        return (struct source){ NULL, c->values, c->height, c->width,
                                (size_t)c->width * (size_t)c->channels };
    return (struct source){ c->bytes.pixels, NULL, c->height, c->width, c->bytes.stride };
}

/* Sets the padding of a window to the mean pixel of its source, summed in double. */
static void pad_with_mean(struct pm_move *window, const struct source *s, int channels)
{
    const double count = (double)s->height * s->width;
    double sum[3] = { 0 };

    for (int y = 0; y < s->height; y++)
        for (int x = 0; x < s->width; x++)
            for (int c = 0; c < channels; c++) {
                const size_t i = (size_t)y * s->stride + (size_t)(x * channels + c);

                sum[c] += s->bytes ? (double)s->bytes[i] : (double)s->values[i];
            }
    for (int c = 0; c < channels; c++)
        window->pad[c] = (float)(sum[c] / count);
}

/* Returns the longest sequence of moves from `begin` on that one round can apply. *next: the move
 * after it. */
static struct round round_of(const struct pm_canvas *c, const struct pm_geometry *g, int begin,
                             int end, int *next)
{
    struct round r = { .source = source_of(c), .channels = c->channels };
    int k = begin;

    while (k < end && g->move[k].kind == PM_MOVE_WINDOW &&
           is_inside(&g->move[k], r.source.height, r.source.width))
        enter(&r.source, &g->move[k++], c->channels);
    r.window.height = r.source.height, r.window.width = r.source.width;
    for (int i = 0; i < 2 && k < end && is_lerp(&g->move[k]); i++, k++) {
        r.resize[i] = &g->move[k];
        r.window.height = g->move[k].height, r.window.width = g->move[k].width;
    }
    const int height = r.window.height, width = r.window.width;
    if (k < end && g->move[k].kind == PM_MOVE_WINDOW && !g->move[k].repeat &&
        (!g->move[k].pad_mean || !r.resize[0])) {
        r.window = g->move[k++];
        if (r.window.pad_mean)
            pad_with_mean(&r.window, &r.source, c->channels);
    }
    for (; k < end && g->move[k].kind == PM_MOVE_MIRROR; k++)
        r.mirror ^= true;
    r.top = between(-r.window.y, 0, r.window.height);
    r.left = between(-r.window.x, 0, r.window.width);
    r.rows = between(height - r.window.y, r.top, r.window.height) - r.top;
    r.cols = between(width - r.window.x, r.left, r.window.width) - r.left;
    *next = k;
    return r;
}

static void pad_row(const float pad[3], int values, int channels, float *x)
{
    for (int i = 0; i < values; i++)
        x[i] = pad[i % channels];
}

/* Writes the window with its padding. */
static void paint(const struct round *r, struct stage *s, float *out)
{
    const int channels = r->channels, used = r->cols * channels;
    const int after = r->window.width - r->left - r->cols;
    const int left = (r->mirror ? after : r->left) * channels;
    const int right = (r->mirror ? r->left : after) * channels, values = left + used + right;
    const float *pad = r->window.pad;

    for (int y = 0; y < r->window.height; y++, out += values) {
        if (y < r->top || y >= r->top + r->rows || !used) {
            pad_row(pad, values, channels, out);
            continue;
        }
        pad_row(pad, left, channels, out);
        stage_row(s, r->window.y + y, out + left);
        pad_row(pad, right, channels, out + left + used);
    }
}

/* Mirrors a row in place. */
static void mirror_row(float *row, int width, int channels)
{
    for (int l = 0, r = width - 1; l < r; l++, r--)
        for (int c = 0; c < channels; c++) {
            const float saved = row[l * channels + c];
            row[l * channels + c] = row[r * channels + c];
            row[r * channels + c] = saved;
        }
}

static void mirror(float *x, int height, int width, int channels)
{
    for (int y = 0; y < height; y++)
        mirror_row(x + (size_t)y * (size_t)width * (size_t)channels, width, channels);
}

static void paint_resized(const struct round *r, float *out)
{
    const struct pm_move *one = r->resize[0], *two = r->resize[1];
    struct stage low = { .source = &r->source }, high = { .below = &low };
    const int x = r->window.x + r->left, channels = r->channels, cols = r->cols;
    const float low_step = step_of(one->method, r->source.width, one->width);
    const float low_down = step_of(one->method, r->source.height, one->height);

    if (!two) {
        stage_begin(&low, r->source.height, low_down,
                    taps_of(low_step, r->source.width, x, cols, r->mirror, 0, channels),
                    cols * channels);
        paint(r, &low, out);
    } else {
        const float step = step_of(two->method, one->width, two->width);
        const int first = pm_lerp_at(x, step, one->width, 1).lo;
        const int last = pm_lerp_at(x + cols - 1, step, one->width, 1).hi;
        const int needed = last - first + 1;
        stage_begin(&low, r->source.height, low_down,
                    taps_of(low_step, r->source.width, first, needed, false, 0, channels),
                    needed * channels);
        stage_begin(&high, one->height, step_of(two->method, one->height, two->height),
                    taps_of(step, one->width, x, cols, r->mirror, first, channels),
                    cols * channels);
        paint(r, &high, out);
    }
    stage_end(&high);
    stage_end(&low);
}

/* Without a resize, complete rows are mirrored. */
static void paint_copy(struct round r, float *out)
{
    struct stage copy = { .source = &r.source,
                          .values = r.cols * r.channels,
                          .first = (size_t)(r.window.x + r.left) * (size_t)r.channels };
    const bool mirrored = r.mirror;

    r.mirror = false;
    paint(&r, &copy, out);
    if (mirrored)
        mirror(out, r.window.height, r.window.width, r.channels);
}

static void paint_round(const struct round *r, float *out)
{
    if (r->resize[0] && r->cols > 0 && r->rows > 0)
        paint_resized(r, out);
    else
        paint_copy(*r, out);
}

/* ---- resizing by tap lists ------------------------------------------------------------------ */

/* Returns the values as bytes, limited to 0..255 and rounded. */
static uint8_t *bytes_of(const struct source *s, int channels)
{
    const size_t row = (size_t)s->width * (size_t)channels;
    uint8_t *out = pm_malloc((size_t)s->height * row);

    for (int y = 0; y < s->height; y++)
        for (size_t i = 0; i < row; i++) {
            const float v = s->values[(size_t)y * s->stride + i];
            out[(size_t)y * row + i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5f);
        }
    return out;
}

/* Returns the values of a window, row after row without gaps. */
static float *packed(const struct source *s, int channels)
{
    const size_t row = (size_t)s->width * (size_t)channels;
    float *out = pm_malloc((size_t)s->height * row * sizeof *out);

    for (int y = 0; y < s->height; y++)
        memcpy(out + (size_t)y * row, s->values + (size_t)y * s->stride, row * sizeof *out);
    return out;
}

/* Applies a resize by tap lists to the source, and writes a window of the result. */
static void paint_taps(const struct source *s, int channels, const struct pm_move *resize,
                       const struct pm_move *window, float *out)
{
    struct pm_view8 in = { s->bytes, s->height, s->width, channels, s->stride };
    const bool antialias = resize->method == PM_RESIZE_ANTIALIAS;
    uint8_t *bytes = !s->bytes && antialias ? bytes_of(s, channels) : NULL;
    float *values = !s->bytes && !antialias ? packed(s, channels) : NULL;

    if (bytes)
        in.pixels = bytes, in.stride = (size_t)s->width * (size_t)channels;
    if (antialias)
        pm_resize_antialias(in, resize->height, resize->width, window->y, window->x, window->height,
                            window->width, out);
    else
        pm_resize_taps(in, values, resize->method, resize->height, resize->width, out);
    pm_free(bytes);
    pm_free(values);
}

/* ---- the whole ----------------------------------------------------------------------------- */

struct pm_canvas pm_canvas_of(struct pm_view8 picture)
{
    return (struct pm_canvas){ .bytes = picture,
                               .height = picture.height,
                               .width = picture.width,
                               .channels = picture.channels };
}

void pm_canvas_free(struct pm_canvas *c)
{
    pm_free(c->owned);
    c->owned = NULL;
}

/* Returns memory for the next values, different from the current ones. */
static float *room(const struct pm_canvas *c, int height, int width, float *last)
{
    if (last && c->values != last)
        return last;
    return pm_malloc((size_t)height * (size_t)width * (size_t)c->channels * sizeof(float));
}

static void settle(struct pm_canvas *c, int height, int width, float *values, const float *last)
{
    pm_free(c->owned);
    c->owned = values == last ? NULL : values;
    c->values = values;
    c->height = height;
    c->width = width;
}

/* Applies a resize by tap lists, with the window before it. With antialiasing, also the window
 * after it. */
static int move_by_taps(struct pm_canvas *c, const struct source *s, const struct pm_geometry *g,
                        int k, int end, float *last)
{
    const struct pm_move *resize = &g->move[k++];
    struct pm_move window = { .height = resize->height, .width = resize->width };

    if (resize->method == PM_RESIZE_ANTIALIAS && k < end && g->move[k].kind == PM_MOVE_WINDOW &&
        is_inside(&g->move[k], resize->height, resize->width))
        window = g->move[k++];
    float *out =
        room(c, window.height, window.width,
             k == end || (k + 1 == end && g->move[k].kind == PM_MOVE_MIRROR) ? last : NULL);
    paint_taps(s, c->channels, resize, &window, out);
    settle(c, window.height, window.width, out, last);
    return k;
}

/* Exchanges rows in place. */
static void flip(float *x, int height, int width, int channels)
{
    const size_t row = (size_t)width * (size_t)channels;

    for (int y = 0; y < height / 2; y++)
        for (size_t i = 0; i < row; i++) {
            float *low = x + (size_t)y * row + i, *high = x + (size_t)(height - 1 - y) * row + i;
            const float saved = *low;

            *low = *high;
            *high = saved;
        }
}

static void turn(struct pm_canvas *c, float *last)
{
    const size_t channels = (size_t)c->channels;
    float *out = room(c, c->width, c->height, last), *to = out;

    for (int y = 0; y < c->width; y++)
        for (int x = 0; x < c->height; x++, to += channels)
            memcpy(to, c->values + ((size_t)x * (size_t)c->width + (size_t)(c->width - 1 - y)) *
                                       channels, channels * sizeof *to);
    settle(c, c->width, c->height, out, last);
}

static void warp(struct pm_canvas *c, const struct pm_move *m, float *last)
{
    float *out = room(c, c->height, c->width, last);

    pm_warp_pixels(c, m, out);
    settle(c, c->height, c->width, out, last);
}

/* Fills a larger canvas with copies of this one. */
static void repeat(struct pm_canvas *c, const struct pm_move *m, float *last)
{
    const size_t channels = (size_t)c->channels;
    float *out = room(c, m->height, m->width, last), *to = out;

    for (int y = 0; y < m->height; y++)
        for (int x = 0; x < m->width; x += c->width) {
            const int columns = m->width - x < c->width ? m->width - x : c->width;
            const size_t values = (size_t)columns * channels;

            memcpy(to, c->values + (size_t)(y % c->height) * (size_t)c->width * channels,
                   values * sizeof *to);
            to += values;
        }
    settle(c, m->height, m->width, out, last);
}

/* Applies a move that only rearranges values. Returns false for other moves, and if the canvas has
 * no values yet. */
static bool rearrange(struct pm_canvas *c, const struct pm_move *m, float *last)
{
    if (!c->values)
        return false;
    if (m->kind == PM_MOVE_MIRROR)
        mirror(c->values, c->height, c->width, c->channels);
    else if (m->kind == PM_MOVE_FLIP)
        flip(c->values, c->height, c->width, c->channels);
    else if (m->kind == PM_MOVE_TURN)
        turn(c, last);
    else if (m->kind == PM_MOVE_WARP)
        warp(c, m, last);
    else if (m->kind == PM_MOVE_WINDOW && m->repeat)
        repeat(c, m, last);
    else
        return false;
    return true;
}

void pm_canvas_move(struct pm_canvas *c, const struct pm_geometry *g, int begin, int end,
                    float *last)
{
    int k = begin, next;

    while (k < end || !c->values) {
        if (k < end && rearrange(c, &g->move[k], k + 1 == end ? last : NULL)) {
            k++;
            continue;
        }
        const struct round r = round_of(c, g, k, end, &next);
        const bool taps = next < end && g->move[next].kind == PM_MOVE_RESIZE &&
                          !is_lerp(&g->move[next]) && !r.resize[0] && !r.mirror &&
                          is_inside(&r.window, r.source.height, r.source.width);
        if (taps) {
            k = move_by_taps(c, &r.source, g, next, end, last);
            continue;
        }
        float *out = room(c, r.window.height, r.window.width, next == end ? last : NULL);
        paint_round(&r, out);
        settle(c, r.window.height, r.window.width, out, last);
        k = next;
    }
}

void pm_resize(struct pm_view8 in, enum pm_resize method, int height, int width, float *out)
{
    struct pm_canvas c = pm_canvas_of(in);
    struct pm_geometry g;

    pm_geometry_begin(&g, in.height, in.width);
    pm_geometry_resize(&g, height, width, method);
    pm_canvas_move(&c, &g, 0, g.count, out);
}
