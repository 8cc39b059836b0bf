/* mask_loss by its definition: one pixel at a time, in double precision. */
#include "check.h"

enum { LOGITS, BOXES, MATCHES, MASKS, CLASSES, WEIGHTS };

/* ---- targets --------------------------------------------------------------------------------- */

/* Place of sample i of n between corners low and high, on an axis of `size` pixels. */
static double place_of(double low, double high, int i, int n, int size)
{
    if (n == 1)
        return (low + high) / 2 * (size - 1);
    return (low + i * (high - low) / (n - 1)) * (size - 1);
}

static int columns_of(const struct ref *r)
{
    const double width = ref_number(r, "width", 0);

    return width > 0 ? (int)width : 32 * r->in[MASKS].shape.dim[3];
}

static double pixel_of(const struct ref *r, int truth, int y, int x)
{
    const int *d = r->in[MASKS].shape.dim;
    const double word = r->in[MASKS].v[((size_t)truth * d[2] + y) * d[3] + x / 32];
    const double whole = word < 0 ? word + 4294967296.0 : word;

    return fmod(floor(whole / exp2(x % 32)), 2);
}

/* The bilinear mean of a mask at row s and column t. *mag: sum of the sizes of its terms and of the
 * error of a place in float32, which moves the mean by at most the place's error. */
static double target_of(const struct ref *r, int row, int truth, int i, int j, double *mag)
{
    const int *x = r->in[LOGITS].shape.dim, rows = r->in[MASKS].shape.dim[2], cols = columns_of(r);
    const double *b = r->in[BOXES].v + 4 * (size_t)row, nearly = 1e-9;
    double s = place_of(b[0], b[2], i, x[1], rows), t = place_of(b[1], b[3], j, x[2], cols), z = 0;

    for (int k = 0; k < 4; k++)
        if (!(fabs(b[k]) <= 1e30))
            return 0;
    *mag += 2 * (1 + fmax(fabs(b[0]), fabs(b[2])) * rows + fmax(fabs(b[1]), fabs(b[3])) * cols);
    if (s < -nearly || s > rows - 1 + nearly || t < -nearly || t > cols - 1 + nearly)
        return 0;
    s = fmin(fmax(s, 0), rows - 1), t = fmin(fmax(t, 0), cols - 1);
    for (int y = (int)floor(s); y <= (int)ceil(s); y++)
        for (int c = (int)floor(t); c <= (int)ceil(t); c++)
            z += (1 - fabs(s - y)) * (1 - fabs(t - c)) * pixel_of(r, truth, y, c);
    return z;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The channel of a true object; -1: it is the background. */
static int channel_of(const struct ref *r, int truth)
{
    const struct ref_array *k = &r->in[CLASSES];
    const int c = r->in[LOGITS].shape.dim[3], labels = k->shape.rank == 3 ? k->shape.dim[2] : 0;
    double best = labels == c ? 0 : -INFINITY; /* the background has the target 0, or its own */
    int found = -1;

    if (c == 1)
        return 0;
    if (!labels)
        return (int)k->v[truth];
    for (int i = 0; i < labels; i++)
        if (k->v[truth * labels + i] > best)
            best = k->v[truth * labels + i], found = i - (labels - c);
    return found;
}

/* Adds a row's cross entropies, and its pixels times its weight. */
static void add_row(const struct ref *r, int row, double *loss, double *mag, double *pixels)
{
    const int *d = r->in[LOGITS].shape.dim, per = r->in[BOXES].shape.dim[1];
    const int match = (int)r->in[MATCHES].v[row], m = r->in[WEIGHTS].shape.dim[1];
    const int truth = row / per * m + match;
    const double w = match < 0 ? 0 : r->in[WEIGHTS].v[truth];
    const int channel = w > 0 ? channel_of(r, truth) : -1;

    if (channel < 0)
        return;
    for (int i = 0; i < d[1]; i++)
        for (int j = 0; j < d[2]; j++) {
            const double x = r->in[LOGITS].v[ref_at(&r->in[LOGITS], row, i, j, channel)];
            double size = 0;
            const double z = target_of(r, row, truth, i, j, &size);

            *loss += w * (fmax(x, 0) - x * z + log(1 + exp(-fabs(x))));
            *mag += w * (2 * fabs(x) + log(2) + fabs(x) * size);
        }
    *pixels += w * d[1] * d[2];
}

static void mask_loss(struct ref *r)
{
    const int images = r->in[BOXES].shape.dim[0], per = r->in[BOXES].shape.dim[1];
    const bool together = ref_says(r, "normalize_over", "batch", "image");
    const double weight = ref_number(r, "weight", 1);
    double loss = 0, mag = 0, pixels = 0;

    ref_output(r, (struct pm_shape){ 0 });
    for (int row = 0; row < images * per; row++) {
        add_row(r, row, &loss, &mag, &pixels);
        if (together ? row + 1 == images * per : (row + 1) % per == 0) {
            const double f = weight / fmax(pixels, 1) / (together ? 1 : images);

            r->y.v[0] += f * loss, r->y.mag[0] += f * mag;
            loss = mag = pixels = 0;
        }
    }
}

/* ---- cases ----------------------------------------------------------------------------------- */

static const float special[][4] = {
    { 0, 0, 1, 1 },
    { 0.25f, 0.5f, 0.25f, 0.5f },   /* without area */
    { 0.5f, 0.125f, 0.5f, 0.875f }, /* without height */
    { -0.5f, 0.25f, 0.5f, 1.5f },   /* partly outside */
    { 1.25f, 1.25f, 2, 2 },         /* outside */
    { 0.75f, 1, 0.25f, 0 },         /* corners in reverse order */
    { 1, 1, 1, 1 },
    { 0, 0, 1, NAN },
    { -INFINITY, 0, 1, 1 },
};

/* Every second box of small cases is a special one. Those of large cases have their corners in
 * order. */
static void arrange(const struct check_case *c, int inputs, int input, struct pm_shape shape,
                    float *v)
{
    (void)inputs;
    for (size_t i = 0; i < pm_shape_count(shape) / 4 && input == BOXES; i++, v += 4)
        if (!c->large && i % 2 == 1)
            memcpy(v, special[i / 2 % PM_COUNT(special)], sizeof special[0]);
        else
            for (int k = 0; k < 2 && c->large; k++) {
                const float low = fminf(v[k], v[2 + k]);

                v[2 + k] = fmaxf(v[k], v[2 + k]), v[k] = low;
            }
}

#define BITS "@-2147483648..2147483647 "
#define GRADIENT .train = true, .no_gradient = ~1u
/* Two images of 9 boxes, 3 classes, 4 true masks of 7 x 41 pixels. */
#define LOSS "mask_loss width=41"
#define ROWS "18x4x5x3@-6..6 2x9x4@-0.1..1.1 "
#define MATCHED "i32:2x9@-2..3 "
#define TRUTH "u32:2x4x7x2" BITS

static const struct check_case cases[] = {
    { LOSS, ROWS MATCHED TRUTH "i32:2x4@0..2 2x4@0.25..2", GRADIENT },
    { LOSS " normalize_over=batch", ROWS MATCHED TRUTH "i32:2x4@0..2 2x4@0.25..2", GRADIENT },
    { LOSS " weight=4", ROWS MATCHED TRUTH "i32:2x4@0..2 2x4@0.01..0.02", GRADIENT },
    { LOSS " weight=0", ROWS MATCHED TRUTH "i32:2x4@0..2 2x4@1..2", GRADIENT },
    { LOSS " normalize_over=batch weight=2", ROWS MATCHED TRUTH "i32:2x4@0..2 2x4@0.001..0.002",
      GRADIENT },                                            /* fewer pixels than 1 */
    { LOSS, ROWS MATCHED TRUTH "i32:2x4@0..2 2x4@0..0", GRADIENT }, /* no object has a mask */
    { LOSS, ROWS MATCHED TRUTH "i32:2x4@0..2 ~2x4@0..1", GRADIENT }, /* some have */
    { LOSS, ROWS "i32:2x9@0..3 " TRUTH "i32:2x4@0..2 2x4@1..1", GRADIENT },
    { LOSS, ROWS "i32:2x9@-1..-1 " TRUTH "i32:2x4@0..2 2x4@1..1", GRADIENT },
    { LOSS, ROWS "i32:2x9@-2..-2 " TRUTH "i32:2x4@0..2 2x4@1..1", GRADIENT },
    { LOSS, ROWS MATCHED "u32:2x4x7x2@0..0 i32:2x4@0..2 2x4@1..1", GRADIENT }, /* empty masks */
    { LOSS, ROWS MATCHED TRUTH "2x4x3@0..1 2x4@0.25..1", GRADIENT },  /* soft labels */
    { LOSS, ROWS MATCHED TRUTH "2x4x4@0..1 2x4@0.25..1", GRADIENT },  /* with a background */
    { LOSS, ROWS MATCHED TRUTH "2x4x3@-1..0 2x4@0.25..1", GRADIENT }, /* background alone */
    { LOSS, "18x4x5x1@-6..6 2x9x4@-0.1..1.1 " MATCHED TRUTH "i32:2x4@0..9 2x4@0.25..2",
      GRADIENT },                                            /* the same for all classes */
    { LOSS, "18x4x5x1@-6..6 2x9x4@-0.1..1.1 " MATCHED TRUTH "2x4x7@0..1 2x4@0.25..2", GRADIENT },
    { "mask_loss", ROWS MATCHED "u32:2x4x7x1" BITS "i32:2x4@0..2 2x4@1..1", GRADIENT },
    { "mask_loss width=32", ROWS MATCHED "u32:2x4x7x1" BITS "i32:2x4@0..2 2x4@1..1", GRADIENT },
    { "mask_loss width=33", ROWS MATCHED "u32:2x4x7x2" BITS "i32:2x4@0..2 2x4@1..1", GRADIENT },
    { "mask_loss width=1", ROWS MATCHED "u32:2x4x1x1" BITS "i32:2x4@0..2 2x4@1..1",
      GRADIENT },                                            /* one pixel */
    { "mask_loss width=1", ROWS MATCHED "u32:2x4x7x1" BITS "i32:2x4@0..2 2x4@1..1", GRADIENT },
    { "mask_loss width=40", ROWS MATCHED "u32:2x4x1x2" BITS "i32:2x4@0..2 2x4@1..1", GRADIENT },
    { LOSS, "18x1x1x3@-6..6 2x9x4@0..1 " MATCHED TRUTH "i32:2x4@0..2 2x4@1..1", GRADIENT },
    { LOSS, "18x1x6x3@-6..6 2x9x4@0..1 " MATCHED TRUTH "i32:2x4@0..2 2x4@1..1", GRADIENT },
    { LOSS, "1x3x3x2@-6..6 1x1x4@0..1 i32:1x1@0..0 u32:1x1x7x2" BITS "i32:1x1@0..1 1x1@1..1",
      GRADIENT },                                            /* one row */
    { LOSS, "63x2x2x2@-6..6 1x63x4@-0.2..1.2 i32:1x63@-2..1 u32:1x2x7x2" BITS
      "i32:1x2@0..1 1x2@1..2", GRADIENT },
    { LOSS, "192x2x2x2@-6..6 3x64x4@-0.2..1.2 i32:3x64@-1..1 u32:3x2x7x2" BITS
      "i32:3x2@0..1 3x2@1..2", GRADIENT },
    { LOSS, "4x2x3x2@-100..100 2x2x4@0..1 i32:2x2@0..3 " TRUTH "i32:2x4@0..1 2x4@1..1",
      GRADIENT },                                            /* logits whose e^x is no float */
    { "mask_loss width=1333", "128x15x15x90@-6..6 2x64x4@0..1 i32:2x64@-2..99 u32:2x100x800x42" BITS
      "i32:2x100@0..89 2x100@1..1", .train = true, .no_gradient = ~1u, .large = true },
    { "mask_loss width=1333", "128x33x33x90@-6..6 2x64x4@0..1 i32:2x64@-2..99 u32:2x100x800x42" BITS
      "i32:2x100@0..89 2x100@1..1", .train = true, .no_gradient = ~1u, .large = true },
    { "mask_loss width=333", "2048x28x28x1@-6..6 16x128x4@0..1 i32:16x128@-1..9 u32:16x10x256x11"
      BITS "16x10x3@0..1 16x10@1..1", .train = true, .no_gradient = ~1u, .large = true },
    { 0 },
};
/* A target is off by up to 230 units: a place on 41 columns is a sum of up to 48 columns with four
 * roundings, one on 7 rows a sum of up to 9. This is the error of a gradient relative to one whose
 * target is wrong by 1; check allows a sixteenth of grad_ulps of the largest gradient. */
const struct pm_layer_test pm_test_mask_loss = {
    cases, mask_loss, .grad_ulps = 4096, .loss = true, .arrange = arrange,
};
