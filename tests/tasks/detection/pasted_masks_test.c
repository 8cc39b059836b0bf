/* Masks of detections pasted into a picture: each pixel by its definition, in the order of rows,
 * where the program makes runs of columns. */
#include "detection_setup.h"

#include "data/coco_mask.h"

#include <math.h>

enum { HEIGHT = 45, WIDTH = 70, D = 100, BOXES = 8 };

struct scene {
    int height, width; /* of a mask */
    int count;
    float box[BOXES][4]; /* in 0..1 of the input, which the picture fills */
    float (*mask)(int detection, int y, int x);
};

static float drawn(int detection, int y, int x)
{
    return (float)((detection * 31 + y * 17 + x * 57 + y * x * 13) % 101) / 100;
}

static float half(int detection, int y, int x)
{
    (void)y, (void)x;
    return detection == 0 ? 0.5f : nextafterf(0.5f, 1);
}

/* The value of a mask at y, x in 0..1 of its box. */
static double at(const struct scene *s, int detection, double y, double x)
{
    const double v = y * (s->height - 1), u = x * (s->width - 1);
    double sum = 0;

    for (int i = 0; i < s->height; i++)
        for (int k = 0; k < s->width; k++)
            sum += fmax(0, 1 - fabs(v - i)) * fmax(0, 1 - fabs(u - k)) *
                   (double)s->mask(detection, i, k);
    return sum;
}

static bool is_inside(const struct scene *s, int detection, const struct pm_box *b, int i, int k)
{
    const double y = ((double)(i * HEIGHT) / (HEIGHT - 1) - b->v[0]) / (b->v[2] - b->v[0]);
    const double x = ((double)(k * WIDTH) / (WIDTH - 1) - b->v[1]) / (b->v[3] - b->v[1]);

    /* The sum of four products errs by 1e-16; values of the masks are 6e-8 apart at least. */
    return y >= 0 && y <= 1 && x >= 0 && x <= 1 && at(s, detection, y, x) > 0.5 + 1e-12;
}

/* Reads the scene as picture 1 of 2; row 0 is a box without area, which is left out. Returns the
 * number of pixels in all masks. */
static int compare(const struct scene *s)
{
    struct setup setup = set_up(CONFIG("}}"));
    struct pm_task *t = setup.e->task;
    const size_t pixels = (size_t)s->height * (size_t)s->width;
    float *masks = pm_calloc(2 * D * pixels, sizeof *masks);
    float boxes[2][D][4] = { { { 0 } } }, scores[2][D] = { { 0 } };
    int32_t classes[2][D] = { { 0 } }, counts[2] = { 0, s->count + 1 };
    const void *outputs[] = { boxes, scores, classes, counts, masks };
    const struct pm_detection_picture of = { { SIDE, SIDE }, HEIGHT, WIDTH, outputs,
                                             PM_USE_PREDICT, 1 };
    struct pm_detection_found found;
    uint8_t *got = pm_malloc(HEIGHT * WIDTH);
    int inside = 0;

    assert_int_equal(t->post.max_total_detections, D);
    t->mask_height = s->height;
    t->mask_width = s->width;
    for (int d = 0; d < s->count; d++) {
        memcpy(boxes[1][d + 1], s->box[d], sizeof s->box[d]);
        for (size_t i = 0; i < pixels; i++)
            masks[(pixels + i) * D + (size_t)d + 1] =
                s->mask(d, (int)i / s->width, (int)i % s->width);
    }
    assert_int_equal(pm_detection_read(t, &of, &found), PM_OK);
    assert_int_equal(found.count, s->count);
    for (int d = 0; d < s->count; d++) {
        assert_true(found.list[d].mask == &found.masks[d]);
        assert_int_equal(found.masks[d].height, HEIGHT);
        pm_runs_decode(&found.masks[d], got);
        for (int i = 0; i < HEIGHT * WIDTH; i++) {
            const bool is = is_inside(s, d, &found.list[d].box, i / WIDTH, i % WIDTH);

            if ((got[i] != 0) != is)
                fail_msg("detection %d: row %d, column %d", d, i / WIDTH, i % WIDTH);
            inside += is;
        }
    }
    pm_detection_found_free(&found);
    pm_free(masks);
    pm_free(got);
    tear_down(&setup);
    return inside;
}

/* The whole picture, its borders, boxes between pixels, thinner than a pixel, and partly outside of
 * it. */
static void drawn_masks(void **state)
{
    static const struct scene scenes[] = {
        { 15, 15, 5, { { 0, 0, 1, 1 }, { 0.1f, 0.2f, 0.63f, 0.71f }, { 0.5f, 0, 1, 0.3f },
                       { 0.2f, 0.97f, 0.9f, 1 }, { -0.3f, -0.2f, 0.4f, 1.5f } }, drawn },
        { 3, 7, 3, { { 0.013f, 0.017f, 0.511f, 0.9f }, { 0.4f, 0.4f, 0.404f, 0.9f },
                     { 0.99f, 0.1f, 1, 0.9f } }, drawn },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(scenes); i++)
        assert_true(compare(&scenes[i]) > 100);
}

/* A probability of exactly 0.5 is outside, the next larger one inside; a mask of one cell. */
static void threshold(void **state)
{
    const struct scene s = { 5, 5, 2, { { 0, 0, 1, 1 }, { 0, 0, 1, 1 } }, half };
    const struct scene cell = { 1, 1, 2, { { 0, 0, 1, 1 }, { 0, 0, 0.6f, 1 } }, half };

    (void)state;
    assert_int_equal(compare(&s), HEIGHT * WIDTH);
    assert_int_equal(compare(&cell), 27 * WIDTH); /* rows 0 to 26 are in 0..0.6 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_masks),
        cmocka_unit_test(threshold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
