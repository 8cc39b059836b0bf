/* mosaic: four pictures of one colour each, whose places and objects are computed again in double
 * precision; draws; refused lists. */
#include "preprocessing_common.h"

enum { SIDE_Y = 40, SIDE_X = 60, PARTS = 4 };

static const int sizes[PARTS][2] = { { 20, 60 }, { 80, 60 }, { 40, 30 }, { 100, 150 } };
static const uint8_t colors[PARTS] = { 40, 80, 160, 240 };

/* The part's place in pixels: y, x, height, width. */
static void place_of(int part, int cy, int cx, double out[4])
{
    const double scale = fmin((double)SIDE_Y / sizes[part][0], (double)SIDE_X / sizes[part][1]);

    out[2] = rint(sizes[part][0] * scale), out[3] = rint(sizes[part][1] * scale);
    out[0] = part < 2 ? cy - out[2] : cy;
    out[1] = part % 2 ? cx : cx - out[3];
}

static void joined(void **state)
{
    struct list l = open_list("[{\"name\": \"mosaic\", \"fill\": 7, \"min_visible\": 0.437}]");
    const float boxes[8] = { 0, 0, 1, 1, 0.2f, 0.1f, 0.4f, 0.3f };
    const float points[4] = { 0.5f, 0.5f, 0.1f, NAN }, weights[2] = { 2, 3 };
    int whole = 0, lost = 0;

    (void)state;
    for (uint32_t i = 0; i < 100; i++) {
        struct pm_image8 im[PARTS];
        struct pm_sample in[PARTS], out;
        struct pm_mosaic_draws d;
        struct pm_arena *a = pm_arena_create();

        assert_true(pm_mosaic_draw(l.augment, 5, 6, i, 1000, &d));
        assert_true(d.center_y >= 0.25 && d.center_y <= 0.75 && d.center_x >= 0.25 &&
                    d.center_x <= 0.75);
        for (int k = 0; k < PARTS; k++) {
            const int32_t labels[2] = { 2 * k + 1, 2 * k + 2 };
            const size_t bytes = (size_t)(sizes[k][0] * sizes[k][1] * 3);

            im[k] = (struct pm_image8){ sizes[k][0], sizes[k][1], 3, pm_arena_alloc(a, bytes) };
            memset(im[k].pixels, colors[k], bytes);
            int32_t *own = pm_arena_alloc(a, sizeof labels);
            memcpy(own, labels, sizeof labels);
            in[k] = (struct pm_sample){ .picture = &im[k], .objects = k == 2 ? 0 : 2,
                                        .boxes = boxes, .keypoints = points, .points = 1,
                                        .labels = own, .weights = weights };
        }
        pm_mosaic_make(l.augment, &d, in, (struct pm_frame){ SIDE_Y, SIDE_X }, a, &out);
        const int cy = (int)(d.center_y * 2 * SIDE_Y), cx = (int)(d.center_x * 2 * SIDE_X);
        assert_int_equal(out.picture->height, 2 * SIDE_Y);
        assert_int_equal(out.picture->width, 2 * SIDE_X);
        for (int y = 0; y < 2 * SIDE_Y; y++)
            for (int x = 0; x < 2 * SIDE_X; x++) {
                uint8_t want = 7;

                for (int k = 0; k < PARTS; k++) {
                    double p[4];

                    place_of(k, cy, cx, p);
                    if (y >= p[0] && x >= p[1] && y < p[0] + p[2] && x < p[1] + p[3])
                        want = colors[k];
                }
                assert_int_equal(out.picture->pixels[(y * 2 * SIDE_X + x) * 3 + 1], want);
            }
        size_t n = 0;
        for (int k = 0; k < PARTS; k++)
            for (size_t o = 0; o < in[k].objects; o++) {
                double p[4], b[4], c[4];

                place_of(k, cy, cx, p);
                for (int v = 0; v < 4; v++) {
                    b[v] = ((double)boxes[4 * o + (size_t)v] * p[2 + v % 2] + p[v % 2]) /
                           (2 * (v % 2 ? SIDE_X : SIDE_Y));
                    c[v] = fmin(fmax(b[v], 0), 1);
                }
                const double share = fmax(c[2] - c[0], 0) * fmax(c[3] - c[1], 0) /
                                     ((b[2] - b[0]) * (b[3] - b[1]));
                if (fabs(share - 0.437) < 1e-6)
                    fail_msg("example %u is at the threshold", i);
                whole += share > 1 - 1e-9, lost += share < 0.437;
                if (share < 0.437)
                    continue;
                assert_true(n < out.objects);
                for (int v = 0; v < 4; v++)
                    assert_true(fabs((double)out.boxes[4 * n + (size_t)v] - c[v]) < 1e-6);
                assert_int_equal(out.labels[n], 2 * k + 1 + (int)o);
                assert_true(out.weights[n] == weights[o]);
                assert_int_equal(out.from[n], (size_t)(k > 2 ? 2 * k - 2 : 2 * k) + o);
                const double y = (0.5 * p[2] + p[0]) / (2 * SIDE_Y);
                const double x = (0.5 * p[3] + p[1]) / (2 * SIDE_X);
                if (o == 0 && y >= 0 && y <= 1 && x >= 0 && x <= 1)
                    assert_true(fabs((double)out.keypoints[2 * n] - y) < 1e-6 &&
                                fabs((double)out.keypoints[2 * n + 1] - x) < 1e-6);
                else
                    assert_true(isnan(out.keypoints[2 * n]));
                n++;
            }
        assert_int_equal(n, out.objects);
        pm_arena_destroy(&a);
    }
    assert_true(whole > 100 && lost > 20);
    close_list(&l);
}

/* A function of seed, step, example: the same after a resume; none from until_steps on; the given
 * share of the pictures; every record can be one of the others. */
static void draws(void **state)
{
    struct list l = open_list("[{\"name\": \"mosaic\", \"probability\": 0.3,"
                              " \"until_steps\": 100}]");
    int wanted = 0, seen[5] = { 0 };

    (void)state;
    for (uint32_t i = 0; i < 2000; i++) {
        struct pm_mosaic_draws d, again, other;
        const bool joined_ = pm_mosaic_draw(l.augment, 1, i % 100, i, 5, &d);

        wanted += joined_;
        assert_int_equal(pm_mosaic_draw(l.augment, 1, i % 100, i, 5, &again), joined_);
        assert_memory_equal(&d, &again, sizeof d);
        pm_mosaic_draw(l.augment, 1, (i + 1) % 100, i, 5, &other);
        assert_true(d.center_y != other.center_y || d.center_x != other.center_x);
        assert_false(pm_mosaic_draw(l.augment, 1, 100 + i, i, 5, &again));
        for (int k = 0; k < PM_MOSAIC_OTHERS; k++)
            seen[d.record[k]]++;
    }
    assert_true(fabs(wanted - 600.0) < 4 * sqrt(2000 * 0.21));
    for (int k = 0; k < 5; k++)
        assert_true(fabs(seen[k] - 1200.0) < 4 * sqrt(6000 * 0.16));
    assert_false(pm_mosaic_draw(NULL, 1, 1, 1, 5, &(struct pm_mosaic_draws){ 0 }));
    close_list(&l);
}

static void refusals(void **state)
{
    (void)state;
    refuse_list("[{\"name\": \"random_flip\"}, {\"name\": \"mosaic\"}]", PM_CARRIES_BOXES,
           "input.augment.1: mosaic joins the pictures of several records, so it must be first");
    refuse_list("[{\"name\": \"mosaic\", \"min_center\": 0.8}]", PM_CARRIES_BOXES, "0.8 is above");
    refuse_list("[{\"name\": \"mosaic\"}]", 0, "only in tasks with boxes");
    refuse_list("[{\"name\": \"mosaic\"}]", PM_CARRIES_BOXES | PM_CARRIES_MAPS, "transform maps");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined),
        cmocka_unit_test(draws),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
