/* region_scenes: runs the losses of a detector's regions, mask_loss and keypoint_loss, on known
 * values: against goldens, in parts of a batch, and twice. */
#ifndef REGION_SCENES_H
#define REGION_SCENES_H

#include <pumice/rng.h>

#include "device/every_device.h"
#include "loss_runs.h"

enum { MOST_LOGITS = 8192, MOST_ROWS = 64, TRUTH_INPUTS = 3 };

/* An input of the layer after the matches: 4 bytes for each number of all images. */
struct truth { const char *name; enum pm_type type; struct pm_shape shape; const void *values; };

/* The first inputs of the layer. A test's struct begins with this one and has the truth, too. */
struct regions {
    char layer[32];           /* with the options of all runs */
    int (*truth)(const struct regions *s, struct truth *out); /* returns the number of inputs */
    int images, rows, truths; /* boxes and true objects of an image */
    int h, w, c;              /* of the logits of a box */
    float logits[MOST_LOGITS], boxes[MOST_ROWS][4];
    int32_t matches[MOST_ROWS];
};
struct result { float loss, gradient[MOST_LOGITS]; };

/* ---- running --------------------------------------------------------------------------------- */

static inline size_t per_row(const struct regions *s)
{
    return (size_t)s->h * (size_t)s->w * (size_t)s->c;
}

static inline size_t all_logits(const struct regions *s)
{
    return (size_t)(s->images * s->rows) * per_row(s);
}

/* logits: a parameter, which has a gradient, or an input. */
static inline struct pm_net *net_of(const struct regions *s, int n, bool parameter,
                                    const char *options)
{
    const struct pm_shape shape = PM_SHAPE4(n * s->rows, s->h, s->w, s->c);
    struct pm_net *net = pm_net_create();
    struct truth truth[TRUTH_INPUTS];
    struct pm_node *in[3 + TRUTH_INPUTS];
    const int count = s->truth(s, truth);

    in[1] = pm_net_input(net, "boxes", PM_SHAPE3(n, s->rows, 4), PM_F32);
    in[2] = pm_net_input(net, "matches", PM_SHAPE2(n, s->rows), PM_I32);
    for (int i = 0; i < count; i++) {
        truth[i].shape.dim[0] = n;
        in[3 + i] = pm_net_input(net, truth[i].name, truth[i].shape, truth[i].type);
    }
    in[0] = parameter ? pm_net_add(net, "logits", in[1], "parameter shape=[%d,%d,%d,%d]",
                                   shape.dim[0], s->h, s->w, s->c)
                      : pm_net_input(net, "logits", shape, PM_F32);
    pm_net_add_many(net, "loss", in, 3 + count, "%s %s", s->layer, options);
    ok(net->error);
    return net;
}

static inline void give(struct pm_plan *p, const char *name, int m, const void *all, size_t each,
                        int first, int count)
{
    memcpy(pm_plan_input(p, 0, name, m), (const char *)all + (size_t)first * each,
           (size_t)count * each);
}

static inline void give_all(struct pm_plan *p, const struct regions *s, int m, int first, int n,
                            bool parameter)
{
    const size_t rows = (size_t)s->rows;
    struct truth truth[TRUTH_INPUTS];
    const int count = s->truth(s, truth);

    if (!parameter)
        give(p, "logits", m, s->logits, rows * per_row(s) * sizeof(float), first, n);
    give(p, "boxes", m, s->boxes, rows * sizeof *s->boxes, first, n);
    give(p, "matches", m, s->matches, rows * sizeof *s->matches, first, n);
    for (int i = 0; i < count; i++)
        give(p, truth[i].name, m, truth[i].values,
             4 * pm_shape_count(truth[i].shape) / (size_t)s->images, first, n);
}

/* The loss of all images and its gradient. */
static inline void train(struct pm_device *d, const struct regions *s, const char *options,
                         struct result *out)
{
    struct run r;

    assert_true(all_logits(s) <= MOST_LOGITS);
    r = open_training(d, net_of(s, s->images, true, options), s->logits, 1, NULL);
    give_all(r.p, s, 0, 0, s->images, true);
    start(r.p);
    out->loss = *(const float *)pm_plan_output(r.p, 0, "loss", 0);
    ok(pm_buffer_read(d, r.v->grads, r.v->offset[0], out->gradient, all_logits(s) * sizeof(float)));
    close_run(&r);
}

/* Returns the loss of a part of the images. */
static inline double loss_of(struct pm_device *d, const struct regions *s, struct part part,
                             const char *options)
{
    const int n = part.examples / part.micro_batches;
    struct run r = open_part(d, net_of(s, n, false, options), part);

    for (int m = 0; m < part.micro_batches; m++)
        give_all(r.p, s, m, part.first + m * n, n, false);
    return finish_part(&r, part);
}

/* The step is rejected. */
static inline void expect_nan(struct pm_device *d, const struct regions *s)
{
    static struct result r;

    train(d, s, "", &r);
    assert_true(isnan(r.loss));
    for (size_t i = 0; i < all_logits(s); i++)
        assert_true(isnan(r.gradient[i]));
}

/* ---- goldens --------------------------------------------------------------------------------- */

/* Reads a case of a golden; h, w and c are set. The logits are numbers of the seed. */
static inline void read_regions(const cJSON *all, const cJSON *c, uint32_t seed, struct regions *s)
{
    s->images = integer(all, "images"), s->rows = integer(all, "rows");
    s->truths = integer(all, "truths");
    for (size_t i = 0; i < all_logits(s); i++)
        s->logits[i] = (float)number(&seed, 1 << 15) / 4096 - 4;
    assert_int_equal(floats(c, "boxes", s->boxes[0]), 4 * s->images * s->rows);
    assert_int_equal(integers(c, "matches", s->matches), s->images * s->rows);
}

static inline void compare(const struct pm_device *d, const char *options, int i, double got,
                           double want, double limit)
{
    if (!(fabs(got - want) <= limit))
        fail_msg("%s: %s: number %d is %.8g, the golden %.8g", pm_device_get_info(d)->name,
                 options, i, got, want);
}

/* Compares the loss and the gradient with a case of a golden. limit: of the error, relative to the
 * loss and to the largest gradient. Gradients from `nearly` on must be 0 where the golden's are. */
static inline void compare_case(struct pm_device *d, const struct regions *s, const cJSON *c,
                                double limit, float nearly)
{
    const char *options = cJSON_GetObjectItem(c, "options")->valuestring;
    const double loss = cJSON_GetObjectItem(c, "loss")->valuedouble;
    static struct result r;
    static float want[MOST_LOGITS];
    const int count = floats(c, "gradient", want);
    double largest = 0;

    assert_int_equal(count, all_logits(s));
    train(d, s, options, &r);
    compare(d, options, -1, (double)r.loss, loss, limit * loss);
    for (int i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)want[i]));
    for (int i = 0; i < count; i++) {
        compare(d, options, i, (double)r.gradient[i], (double)want[i], limit * largest);
        assert_true((r.gradient[i] == 0) == (want[i] == 0) || fabsf(want[i]) < nearly);
    }
}

/* ---- parts of a batch, and runs that must be equal ------------------------------------------- */

/* Draws logits, boxes with sides of least..least + more, and unlike numbers of matched rows. The
 * third image has none. */
static inline void draw_regions(struct pm_rng *r, struct regions *s, float low, float least,
                                float more)
{
    for (size_t i = 0; i < all_logits(s); i++)
        s->logits[i] = (float)(6 * pm_rng_uniform(r) - 3);
    for (int i = 0; i < s->images * s->rows; i++) {
        for (int k = 0; k < 2; k++) {
            s->boxes[i][k] = (float)pm_rng_uniform(r) * low;
            s->boxes[i][2 + k] = s->boxes[i][k] + least + (float)pm_rng_uniform(r) * more;
        }
        s->matches[i] = i / s->rows == 2 ? -1 : i % s->rows <= i / s->rows ? i % 3 : -2 + i % 2;
    }
}

/* s has four images. The loss of each image has the same bits in all parts. A term is rounded once
 * when it is divided and at most three times when the four images are added, in the whole and in
 * the parts. */
static inline void compare_parts(struct pm_device *d, const struct regions *s)
{
    const double bound = 2 * 4 * 0x1p-24;
    const double whole = loss_of(d, s, (struct part){ 0, 4, 1, 1 }, "");
    const double clones = loss_of(d, s, (struct part){ 0, 1, 1, 0.25f }, "") +
                          loss_of(d, s, (struct part){ 1, 3, 1, 0.75f }, "");

    assert_true(whole > 0.1);
    assert_float_equal(clones, whole, bound * whole);
    assert_float_equal(loss_of(d, s, (struct part){ 0, 4, 2, 1 }, ""), whole, bound * whole);
    /* With one divisor for all examples of a plan, plans of one example agree with images. */
    assert_float_equal(loss_of(d, s, (struct part){ 0, 4, 4, 1 }, "normalize_over=batch"), whole,
                       bound * whole);
    assert_true(fabs(loss_of(d, s, (struct part){ 0, 4, 1, 1 }, "normalize_over=batch") - whole) >
                1e-3 * whole);
}

static inline void compare_runs(struct pm_device *d, const struct regions *s)
{
    static struct result a, b;

    train(d, s, "", &a);
    train(d, s, "", &b);
    assert_memory_equal(&a, &b, sizeof a);
}

/* The number of threads changes no bit. */
static inline void compare_threads(const struct regions *s)
{
    static const int counts[] = { 1, 3 };
    static struct result r[PM_COUNT(counts)];

    for (size_t i = 0; i < PM_COUNT(counts); i++) {
        struct pm_device *d = cpu_with(counts[i]);

        train(d, s, "", &r[i]);
        pm_device_close(&d);
    }
    assert_true(r[0].loss > 0.1f);
    assert_memory_equal(&r[0], &r[1], sizeof r[0]);
}

#endif
