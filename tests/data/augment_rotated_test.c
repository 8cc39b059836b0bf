/* Rotated boxes through moves, rows and a mosaic. The reference moves the four corners of a box in
 * double precision and compares them with the corners of the result. Coordinates are up to 200
 * pixels and are stored in float32 shares (2^-24 of 1): an error of 200 * 2^-24 * 5 numbers, and
 * twice that for moves one after the other, is below 2e-4 pixels. */
#include <cjson/cJSON.h>

#include "augment_world.h"

#include "data/augment.h"
#include "data/rotated_box.h"

static const double pi = 3.14159265358979323846, close_to = 2e-4;

static void corners_of(const float *box, int height, int width, double out[PM_CORNERS][2])
{
    struct pm_rectangle r;

    pm_rectangle_of_box(box, height, width, &r);
    pm_rectangle_corners(&r, out);
}

/* The same four corners, beginning with any of them, either way around. */
static void assert_corners(const double got[PM_CORNERS][2], const double want[PM_CORNERS][2])
{
    for (int k = 0; k < PM_CORNERS; k++) {
        double best = INFINITY;

        for (int i = 0; i < PM_CORNERS; i++)
            best = fmin(best, hypot(got[i][0] - want[k][0], got[i][1] - want[k][1]));
        if (!(best < close_to))
            fail_msg("corner %d (%g, %g) is %g pixels off", k, want[k][0], want[k][1], best);
    }
}

static void random_box(struct pm_rng *r, float box[5])
{
    for (int k = 0; k < 2; k++)
        box[k] = (float)pm_rng_uniform(r);
    box[2] = 0.02F + 0.1F * (float)pm_rng_uniform(r);
    box[3] = box[2] + 0.3F * (float)pm_rng_uniform(r);
    box[4] = (float)((pm_rng_uniform(r) - 0.5) * pi);
}

/* ---- moves ----------------------------------------------------------------------------------- */

static void compare_moves(const struct pm_geometry *g, const float *boxes, size_t count)
{
    const int height = pm_geometry_height(g), width = pm_geometry_width(g);
    float *moved = pm_malloc(5 * count * sizeof *moved);

    memcpy(moved, boxes, 5 * count * sizeof *moved);
    pm_geometry_rotated(g, moved, count);
    for (size_t i = 0; i < count; i++) {
        double want[PM_CORNERS][2], got[PM_CORNERS][2];

        corners_of(boxes + 5 * i, g->height, g->width, want);
        for (int k = 0; k < PM_CORNERS; k++) {
            float p[2] = { (float)(want[k][0] / g->height), (float)(want[k][1] / g->width) };

            pm_geometry_points(g, p, 1); /* the reference: moves of points */
            want[k][0] = (double)p[0] * height, want[k][1] = (double)p[1] * width;
        }
        corners_of(moved + 5 * i, height, width, got);
        assert_corners(got, want);
        assert_true(fabsf(moved[5 * i + 4]) <= (float)(pi / 2));
    }
    pm_geometry_rotated_back(g, moved, count);
    for (size_t i = 0; i < count; i++) {
        double want[PM_CORNERS][2], got[PM_CORNERS][2];

        corners_of(boxes + 5 * i, g->height, g->width, want);
        corners_of(moved + 5 * i, g->height, g->width, got);
        assert_corners(got, want);
    }
    pm_free(moved);
}

/* Moves that keep right angles, one by one and together. */
static void moves(void **state)
{
    enum { COUNT = 20 };
    const double angle = 0.3;
    const float warp[6] = { (float)cos(angle), (float)sin(angle), 5, (float)-sin(angle),
                            (float)cos(angle), -7 };
    struct pm_rng r = pm_rng_make(3, 4, 0, 0);
    const float grey[3] = { 0, 0, 0 };
    float boxes[5 * COUNT];
    struct pm_geometry g;

    (void)state;
    for (int n = 0; n < 64; n++) {
        for (int i = 0; i < COUNT; i++)
            random_box(&r, boxes + 5 * i);
        pm_geometry_begin(&g, HEIGHT, WIDTH);
        if (n & 1)
            pm_geometry_window(&g, 7, -9, 50, 90, NULL);
        if (n & 2)
            pm_geometry_mirror(&g);
        if (n & 4)
            pm_geometry_turn(&g);
        if (n & 8)
            pm_geometry_warp(&g, warp, grey);
        if (n & 16)
            pm_geometry_flip(&g);
        if (n & 32)
            pm_geometry_resize(&g, 2 * pm_geometry_height(&g), 2 * pm_geometry_width(&g),
                               PM_RESIZE_BILINEAR);
        compare_moves(&g, boxes, COUNT);
    }
}

/* Flips of boxes along the axes: the angle and the sides stay what they are, and are not exchanged,
 * a half turn or a negative side. Only the centre moves. Quarters have either sign; float32 has
 * steps of 1.2e-7 there. */
static void flips_along_the_axes(void **state)
{
    static const float quarter = 1.57079637F, angles[] = { 0, -0.0F, quarter, -quarter };
    struct pm_geometry g;

    (void)state;
    for (int way = 1; way < 4; way++)
        for (size_t i = 0; i < PM_COUNT(angles); i++) {
            float box[5] = { 0.25F, 0.125F, 0.0625F, 0.25F, angles[i] };

            pm_geometry_begin(&g, HEIGHT, WIDTH);
            if (way & 1)
                pm_geometry_mirror(&g);
            if (way & 2)
                pm_geometry_flip(&g);
            pm_geometry_rotated(&g, box, 1);
            assert_true(fabsf(box[0] - (way & 2 ? 0.75F : 0.25F)) < 1e-6F);
            assert_true(fabsf(box[1] - (way & 1 ? 0.875F : 0.125F)) < 1e-6F);
            assert_true(fabsf(box[2] - 0.0625F) < 1e-7F && fabsf(box[3] - 0.25F) < 1e-7F);
            assert_true(fabsf(fabsf(box[4]) - fabsf(angles[i])) < 1.3e-7F);
        }
}

/* A resize that changes the aspect: centre, area and the direction of the w axis are right, and the
 * way back gives the same box. */
static void stretched(void **state)
{
    struct pm_rng r = pm_rng_make(5, 6, 0, 0);
    struct pm_geometry g;

    (void)state;
    pm_geometry_begin(&g, HEIGHT, WIDTH);
    pm_geometry_resize(&g, 100, 70, PM_RESIZE_BILINEAR);
    for (int n = 0; n < 100; n++) {
        double before[PM_CORNERS][2], after[PM_CORNERS][2], got[PM_CORNERS][2];
        float box[5], moved[5];

        random_box(&r, box);
        memcpy(moved, box, sizeof box);
        pm_geometry_rotated(&g, moved, 1);
        assert_true(moved[0] == box[0] && moved[1] == box[1]);
        corners_of(box, HEIGHT, WIDTH, before);
        corners_of(moved, 100, 70, after);
        const double along[2] = { (before[1][0] - before[0][0]) * 100 / HEIGHT,
                                  (before[1][1] - before[0][1]) * 70 / WIDTH };
        const double got_along[2] = { after[1][0] - after[0][0], after[1][1] - after[0][1] };
        const double sign = along[0] * got_along[0] + along[1] * got_along[1] < 0 ? -1 : 1;

        assert_true(hypot(along[0] - sign * got_along[0], along[1] - sign * got_along[1]) <
                    close_to);
        assert_true(fabs((double)moved[2] * (double)moved[3] - (double)box[2] * (double)box[3]) <
                    1e-6);
        pm_geometry_rotated_back(&g, moved, 1);
        corners_of(moved, HEIGHT, WIDTH, got);
        assert_corners(got, before);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* A scene with rotated boxes and the upright ones around them. */
static void fill_rotated(struct scene *s, struct pm_rng *r, float *rotated, size_t count)
{
    fill_objects(s, r, count);
    for (size_t i = 0; i < count; i++) {
        struct pm_rectangle at;
        double around[4];

        random_box(r, rotated + 5 * i);
        pm_rectangle_of_box(rotated + 5 * i, HEIGHT, WIDTH, &at);
        pm_rectangle_around(&at, around);
        for (int k = 0; k < 4; k++)
            s->boxes[4 * i + (size_t)k] =
                (float)fmin(fmax(around[k] / (k % 2 ? WIDTH : HEIGHT), 0), 1);
    }
    s->sample.rotated = rotated;
}

static void place_all(struct scene *s, uint32_t example, const char *where)
{
    const struct pm_occasion o = { .height = 640, .width = 640, .channels = 3, .train = true,
                                   .seed = 9, .example = example, .where = where };

    if (pm_place(&s->input, &s->sample, &o, &s->placed) < 0)
        fail_msg("%s: %s", where, pm_error_text());
    pm_placed_objects(&s->placed, &s->sample, s->arena, &s->out);
}

/* Every list drops objects by the share of their area inside, and gives boxes that fit. */
static void rows(void **state)
{
    static const struct {
        const char *list;
        double least; /* share of the area that kept objects have inside the picture */
    } cases[] = {
        { "[{\"name\": \"random_flip\"}, {\"name\": \"random_vertical_flip\"}, "
          "{\"name\": \"random_rotation90\"}]", 0 },
        { "[{\"name\": \"random_crop_image\", \"overlap_thresh\": 0.7, \"clip_boxes\": true}]",
          0.7 },
        { "[{\"name\": \"ssd_random_crop\"}, {\"name\": \"random_flip\"}, {\"name\": "
          "\"min_visible\", \"area\": 0.6}]", 0.6 },
        { "[{\"name\": \"random_square_crop_by_scale\"}, {\"name\": \"random_pad_image\"}]", 0 },
        { "[{\"name\": \"random_self_concat_image\", \"concat_vertical_probability\": 0.5}]", 0 },
        { "[{\"name\": \"autoaugment_image\", \"policy_name\": \"v0\"}]", 0 },
        { "[{\"name\": \"random_rotate\"}, {\"name\": \"random_flip\"}]", 0 },
        { "[{\"name\": \"random_rotate\", \"quarters\": true, \"probability\": 1}]", 0 },
        { "[{\"name\": \"random_rotate\", \"grow\": false, \"min_degrees\": -90}, {\"name\": "
          "\"min_visible\", \"area\": 0.5}]", 0.5 },
    };
    struct pm_rng r = pm_rng_make(7, 8, 0, 0);
    float rotated[5 * MOST];

    (void)state;
    for (size_t n = 0; n < PM_COUNT(cases); n++) {
        struct scene s;
        size_t kept = 0;

        open_scene(&s, cases[n].list);
        for (uint32_t i = 0; i < 200; i++) {
            fill_rotated(&s, &r, rotated, MOST);
            place_all(&s, i, cases[n].list);
            const struct pm_geometry *g = &s.placed.geometry;
            const int height = pm_geometry_height(g), width = pm_geometry_width(g);

            for (size_t k = 0; k < s.out.objects; k++) {
                const float *box = s.out.rotated + 5 * k, *upright = s.out.boxes + 4 * k;
                double want[PM_CORNERS][2], got[PM_CORNERS][2], around[4];
                float moved[5];
                struct pm_rectangle at;

                memcpy(moved, rotated + 5 * s.out.from[k], sizeof moved);
                pm_geometry_rotated(g, moved, 1);
                corners_of(moved, height, width, want);
                corners_of(box, height, width, got);
                if (n != 4) /* of a repeated picture the object may be in another copy */
                    assert_corners(got, want);
                pm_rectangle_of_box(box, height, width, &at);
                assert_true(at.w >= at.h * (1 - 1e-6));
                assert_true(pm_rectangle_inside(&at, height, width) >= cases[n].least - 1e-5);
                pm_rectangle_around(&at, around);
                for (int c = 0; c < 4; c++) {
                    const int side = c % 2 ? width : height;
                    const double limit = fmin(fmax(around[c], 0), side);

                    if (n) /* without a row that cuts, boxes may be those of the sample */
                        assert_true(fabs((double)upright[c] * side - limit) < close_to);
                }
            }
            kept += s.out.objects;
        }
        assert_true(kept > 200);
        close_scene(&s);
    }
}

/* Share of the area, not of the upright box: a thin diagonal bar whose upright box is half inside.
 * The crop keeps columns 20 and more of a bar that ends at column 24. */
static void share_of_area(void **state)
{
    const float rotated[10] = { 0.5F, 0.25F, 0.05F, 0.25F, 0.7853982F, /* its centre is at 20 */
                                0.5F, 0.2F, 0.05F, 0.25F, 0.7853982F };
    static const double thresholds[] = { 0.49, 0.51, 0 };
    struct scene s;

    (void)state;
    for (int n = 0; n < 3; n++) {
        char list[100];
        struct pm_scene_objects o;
        struct pm_geometry g;

        snprintf(list, sizeof list, "[{\"name\": \"random_flip\"}]");
        open_scene(&s, list);
        s.sample.objects = 2;
        s.sample.rotated = rotated;
        pm_geometry_begin(&g, HEIGHT, WIDTH);
        pm_geometry_window(&g, 0, 20, HEIGHT, WIDTH - 20, NULL);
        pm_scene_open(&o, &s.sample, &g);
        o.moves = 1;
        pm_scene_retain(&o, (float)thresholds[n], true);
        assert_int_equal(o.list[0].dropped, n == 1);
        assert_int_equal(o.list[1].dropped, n < 2);
        if (n == 2)
            assert_true(o.list[0].visible > 0.499F && o.list[0].visible < 0.501F &&
                        o.list[1].visible < 0.4F);
        pm_scene_close(&o);
        close_scene(&s);
    }
}

/* Turned pixels show where they came from, by the formula of a clockwise turn around the centre of
 * the canvas; a grown canvas has the whole picture. Values take a dozen roundings of 2^-24 of 200:
 * below 2e-4, and as much for the coordinates. */
static void turned_pixels(void **state)
{
    enum { INPUT = 160 };
    float *out = pm_malloc(INPUT * INPUT * 3 * sizeof *out);

    (void)state;
    for (int grow = 0; grow < 2; grow++) {
        char list[200];
        struct scene s;

        snprintf(list, sizeof list, "[{\"name\": \"random_rotate\", \"probability\": 1, \"grow\": "
                 "%s, \"min_degrees\": -30, \"max_degrees\": 30, \"fill\": 0}]",
                 grow ? "true" : "false");
        open_scene(&s, list);
        for (uint32_t n = 0; n < 20; n++) {
            const struct pm_occasion o = { .height = INPUT, .width = INPUT, .channels = 3,
                                           .train = true, .seed = 3, .example = n, .where = "x" };
            double sum = 0;

            if (pm_place(&s.input, &s.sample, &o, &s.placed) < 0)
                fail_msg("%s", pm_error_text());
            pm_placed_picture(&s.placed, &s.im, out);
            const double a = (60 * s.placed.rows.at[0].draws->more[0] - 30) * pi / 180;
            const struct pm_geometry *g = &s.placed.geometry;
            const int height = g->move[grow].height, width = g->move[grow].width;
            const int top = (height - HEIGHT) / 2, left = (width - WIDTH) / 2;

            assert_true(grow ? height > HEIGHT && width > WIDTH
                             : height == HEIGHT && width == WIDTH);
            for (int y = 0; y < height; y++)
                for (int x = 0; x < width; x++) {
                    const float *p = out + 3 * (INPUT * y + x);
                    const double dy = y - (height - 1) / 2.0, dx = x - (width - 1) / 2.0;
                    const double from_y = (height - 1) / 2.0 - dx * sin(a) + dy * cos(a) - top;
                    const double from_x = (width - 1) / 2.0 + dx * cos(a) + dy * sin(a) - left;
                    const double got_y = ((double)p[0] + 1) * 127.5;
                    const double got_x = ((double)p[1] + 1) * 127.5;

                    sum += ((double)p[2] + 1) * 127.5 / 200;
                    if (from_y < 0.001 || from_x < 0.001 || from_y > HEIGHT - 1.001 ||
                        from_x > WIDTH - 1.001)
                        continue;
                    assert_true(fabs(got_y - from_y) < 4e-4 && fabs(got_x - from_x) < 4e-4);
                }
            /* The third channel is 200 in the picture: its area stays, up to the border's
             * pixels, which are between picture and padding. */
            if (grow)
                assert_true(fabs(sum - HEIGHT * WIDTH) < 2 * (HEIGHT + WIDTH) * 0.25);
            else
                assert_true(sum < HEIGHT * WIDTH);
        }
        close_scene(&s);
    }
    pm_free(out);
}

/* Quarters are clockwise: a box at the left of the upper edge comes to the right one. */
static void quarters(void **state)
{
    const float rotated[5] = { 0.1F, 0.3F, 0.05F, 0.2F, 0.25F };
    unsigned seen = 0;
    struct scene s;

    (void)state;
    open_scene(&s, "[{\"name\": \"random_rotate\", \"quarters\": true, \"probability\": 1}]");
    s.sample.objects = 1;
    s.sample.rotated = rotated;
    for (uint32_t n = 0; n < 30; n++) {
        place_all(&s, n, "quarters");
        const int turns = s.placed.rows.at[0].draws->which;
        const int height = pm_geometry_height(&s.placed.geometry);
        const float *b = s.out.rotated;
        /* In pixels of the original: 6, 24. A clockwise quarter brings y, x to x, height - y. */
        const double want[4][2] = { { 0 }, { 24, HEIGHT - 6 }, { HEIGHT - 6, WIDTH - 24 },
                                    { WIDTH - 24, 6 } };
        const double angle = 0.25 + turns * pi / 2;

        assert_true(turns >= 1 && turns <= 3);
        seen |= 1u << turns;
        /* The input is padded to 640 x 640. */
        assert_true(fabs((double)b[0] * height - want[turns][0]) < close_to);
        assert_true(fabs((double)b[1] * pm_geometry_width(&s.placed.geometry) - want[turns][1]) <
                    close_to);
        assert_true(fabs(remainder((double)b[4] - angle, pi)) < 1e-6);
    }
    assert_int_equal(seen, 14);
    close_scene(&s);
}

static void rotate_refused(void **state)
{
    struct pm_arena *a = pm_arena_create();
    const struct pm_augment *out = NULL;
    cJSON *list = cJSON_Parse("[{\"name\": \"random_rotate\", \"min_degrees\": 20}]");

    (void)state;
    assert_fails(pm_augment_open(list, "x.json: input.augment", a, &out), PM_ECONFIG,
                 "min_degrees: 20 is above", "max_degrees, 10");
    cJSON_Delete(list);
    list = cJSON_Parse("[{\"name\": \"random_rotate\", \"fill\": [1, 2]}]");
    assert_fails(pm_augment_open(list, "x.json: input.augment", a, &out), PM_ECONFIG,
                 "fill: 2 numbers");
    cJSON_Delete(list);
    pm_arena_destroy(&a);
}

static void jitter_refused(void **state)
{
    struct list l = open_list("[{\"name\": \"random_jitter_boxes\"}]");

    (void)state;
    assert_int_equal(pm_augment_check(l.augment, PM_CARRIES_BOXES, true, "x"), PM_OK);
    assert_fails(pm_augment_check(l.augment, PM_CARRIES_BOXES | PM_CARRIES_ROTATED, true,
                                  "x.json: input.augment"), PM_ECONFIG,
                 "random_jitter_boxes does not transform rotated boxes");
    close_list(&l);
}

/* ---- mosaic ---------------------------------------------------------------------------------- */

static void mosaic(void **state)
{
    enum { SIDE = 40 };
    struct list l = open_list("[{\"name\": \"mosaic\", \"min_visible\": 0.5}]");
    /* In the middle; with its centre at the left border of its own picture: half is visible at
     * most; and with its centre beyond. */
    const float rotated[15] = { 0.5F, 0.5F, 0.1F, 0.3F, 0.5F, 0.5F, 0, 0.1F, 0.3F, 0.5F,
                                0.5F, -0.02F, 0.1F, 0.3F, 0.5F };
    const float boxes[12] = { 0.3F, 0.3F, 0.7F, 0.7F, 0.3F, 0, 0.7F, 0.2F, 0.3F, 0, 0.7F, 0.1F };
    const int32_t labels[3] = { 1, 2, 3 };
    uint8_t pixels[20 * 20 * 3] = { 0 };
    struct pm_image8 im = { 20, 20, 3, pixels };
    size_t middle = 0;

    (void)state;
    for (uint32_t i = 0; i < 50; i++) {
        struct pm_arena *a = pm_arena_create();
        struct pm_sample in[4], out;
        struct pm_mosaic_draws d;

        for (int k = 0; k < 4; k++)
            in[k] = (struct pm_sample){ .picture = &im, .objects = 3, .boxes = boxes,
                                        .rotated = rotated, .labels = labels };
        assert_true(pm_mosaic_draw(l.augment, 5, 6, i, 100, &d));
        pm_mosaic_make(l.augment, &d, in, (struct pm_frame){ SIDE, SIDE }, a, &out);
        const int cy = (int)(d.center_y * 2 * SIDE), cx = (int)(d.center_x * 2 * SIDE);
        for (size_t k = 0; k < out.objects; k++) {
            const size_t part = out.from[k] / 3, object = out.from[k] % 3;
            const double y = (part < 2 ? cy - SIDE : cy) + (double)rotated[5 * object] * SIDE;
            const double x = (part % 2 ? cx : cx - SIDE) + (double)rotated[5 * object + 1] * SIDE;
            const float *box = out.rotated + 5 * k;

            assert_true(object < 2); /* less than half of the third is in its picture */
            assert_int_equal(out.labels[k], (int)object + 1);
            assert_true(fabs((double)box[0] * 2 * SIDE - y) < close_to);
            assert_true(fabs((double)box[1] * 2 * SIDE - x) < close_to);
            assert_true(fabs((double)box[2] - 0.05) < 1e-6 && fabs((double)box[3] - 0.15) < 1e-6);
            assert_true(fabs((double)box[4] - 0.5) < 1e-6);
            middle += object == 0;
        }
        pm_arena_destroy(&a);
    }
    assert_true(middle > 50);
    close_list(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves),         cmocka_unit_test(stretched),
        cmocka_unit_test(flips_along_the_axes),
        cmocka_unit_test(rows),          cmocka_unit_test(share_of_area),
        cmocka_unit_test(jitter_refused), cmocka_unit_test(mosaic),
        cmocka_unit_test(turned_pixels), cmocka_unit_test(quarters),
        cmocka_unit_test(rotate_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
