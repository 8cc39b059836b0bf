/* The members of a sample under a geometry: points, boxes, keypoints, masks, maps and pictures
 * compared with a reference in double precision that follows each move separately. It shares no
 * code with src/ and maps forwards where the code maps backwards. */
#include "preprocessing_common.h"

enum { MOST = 6, CASES = 400 };

/* Adds random moves: inner and padded windows, resizes by every method, mirrors, flips, turns. */
static void some_moves(struct pm_rng *r, struct pm_geometry *g)
{
    const int count = (int)pm_rng_int(r, 0, MOST);

    pm_geometry_begin(g, (int)pm_rng_int(r, 8, 40), (int)pm_rng_int(r, 8, 40));
    for (int k = 0; k < count; k++) {
        const int h = pm_geometry_height(g), w = pm_geometry_width(g);
        const float pad[3] = { 1, 2, 3 };

        switch (pm_rng_int(r, 0, 4)) {
        case 0:
            pm_geometry_window(g, (int)pm_rng_int(r, -3, h / 2), (int)pm_rng_int(r, -3, w / 2),
                               (int)pm_rng_int(r, 3, h + 3), (int)pm_rng_int(r, 3, w + 3), pad);
            break;
        case 1:
            pm_geometry_resize(g, (int)pm_rng_int(r, 4, 50), (int)pm_rng_int(r, 4, 50),
                               (enum pm_resize)pm_rng_int(r, 0, 5));
            break;
        case 2:
            pm_geometry_flip(g);
            break;
        case 3:
            pm_geometry_turn(g);
            break;
        default:
            pm_geometry_mirror(g);
        }
    }
}

/* ---- points ------------------------------------------------------------------------------ */

/* Follows y, x, given as shares of the picture, through all moves; the result is in pixels. */
static void follow(const struct pm_geometry *g, double *y, double *x)
{
    double height = g->height, width = g->width;

    *y *= height, *x *= width;
    for (int k = 0; k < g->count; k++) {
        const struct pm_move *m = &g->move[k];

        if (m->kind == PM_MOVE_WINDOW)
            *y -= m->y, *x -= m->x;
        else if (m->kind == PM_MOVE_RESIZE)
            *y = *y / height * m->height, *x = *x / width * m->width;
        else if (m->kind == PM_MOVE_FLIP)
            *y = height - *y;
        else if (m->kind == PM_MOVE_MIRROR)
            *x = width - *x;
        else {
            const double was = *y;
            *y = width - *x;
            *x = was;
        }
        height = m->height, width = m->width;
    }
    *y /= height, *x /= width;
}

static void near(double ours, double theirs)
{
    if (!(fabs(ours - theirs) <= 4 * ulp * (1 + fabs(theirs))))
        fail_msg("%.9g, the reference says %.9g", ours, theirs);
}

/* Boxes after the moves return to their places. A coordinate after the moves is rounded to half a
 * unit of its last place; the way back divides this error by the scale and rounds once more. */
static void check_back(const struct pm_geometry *g, const float *before, const float *after)
{
    float back[8];
    int turned = 0;

    for (int k = 0; k < g->count; k++)
        turned ^= g->move[k].kind == PM_MOVE_TURN;
    memcpy(back, after, sizeof back);
    pm_geometry_boxes_back(g, back, 2);
    for (int k = 0; k < 2; k++)
        for (int n = 0; n < 2; n++) {
            const float *b = before + 4 * k + n, *a = after + 4 * k + (n ^ turned);
            const double scale = ((double)a[2] - (double)a[0]) / ((double)b[2] - (double)b[0]);
            const double size = fmax(fabs((double)a[0]), fabs((double)a[2]));
            const double tolerance = 0x1p-24 * (2 * size / scale + 2);

            assert_true(fabs((double)back[4 * k + n] - (double)b[0]) <= tolerance);
            assert_true(fabs((double)back[4 * k + 2 + n] - (double)b[2]) <= tolerance);
        }
}

static void points_and_boxes(void **state)
{
    int mirrored = 0;

    (void)state;
    for (uint32_t i = 0; i < CASES; i++) {
        struct pm_rng r = pm_rng_make(1, 2, 3, i);
        struct pm_geometry g;
        float points[8], boxes[8], boxed[8];

        some_moves(&r, &g);
        for (int k = 0; k < 8; k++)
            points[k] = (float)pm_rng_uniform(&r);
        for (int k = 0; k < 2; k++)
            for (int n = 0; n < 2; n++) {
                const double a = pm_rng_uniform(&r), b = pm_rng_uniform(&r);
                boxes[4 * k + n] = (float)fmin(a, b);
                boxes[4 * k + 2 + n] = (float)fmax(a, b);
            }
        memcpy(boxed, boxes, sizeof boxes);
        pm_geometry_boxes(&g, boxed, 2);
        for (int k = 0; k < 2; k++) {
            double y0 = boxes[4 * k], x0 = boxes[4 * k + 1], y1 = boxes[4 * k + 2],
                   x1 = boxes[4 * k + 3];

            follow(&g, &y0, &x0);
            follow(&g, &y1, &x1);
            near(boxed[4 * k], fmin(y0, y1));
            near(boxed[4 * k + 1], fmin(x0, x1));
            near(boxed[4 * k + 2], fmax(y0, y1));
            near(boxed[4 * k + 3], fmax(x0, x1));
        }
        check_back(&g, boxes, boxed);
        float carried[8];
        memcpy(carried, points, sizeof points);
        pm_geometry_points(&g, carried, 4);
        for (int k = 0; k < 4; k++) {
            double y = points[2 * k], x = points[2 * k + 1];

            follow(&g, &y, &x);
            near(carried[2 * k], y);
            near(carried[2 * k + 1], x);
        }
        mirrored += pm_geometry_is_mirrored(&g);
    }
    assert_in_range(mirrored, CASES / 5, CASES / 5 * 4);
}

/* Left and right change names in a mirrored picture only. Unlabelled keypoints stay unlabelled. */
static void keypoints(void **state)
{
    static const int sides[3] = { 1, 0, 2 };
    const float before[12] = {
        0.1f, 0.2f, 0.3f, 0.4f, 0.5f, NAN, 0.6f, 0.75f, 0.8f, 0.25f, 0.9f, 1
    };
    struct pm_geometry g;
    float k[12];

    (void)state;
    for (int turns = 0; turns < 3; turns++) {
        pm_geometry_begin(&g, 10, 20);
        for (int i = 0; i < turns; i++)
            pm_geometry_mirror(&g);
        memcpy(k, before, sizeof k);
        pm_geometry_keypoints(&g, k, 2, 3, sides);
        for (int object = 0; object < 2; object++)
            for (int p = 0; p < 3; p++) {
                const float *was = before + 6 * object + 2 * (turns == 1 ? sides[p] : p);
                const float *is = k + 6 * object + 2 * p;

                assert_true(is[0] == was[0]);
                if (isnan(was[1]))
                    assert_true(isnan(is[1]));
                else
                    near(is[1], turns == 1 ? 1 - (double)was[1] : (double)was[1]);
            }
    }
    memcpy(k, before, sizeof k);
    pm_geometry_begin(&g, 10, 20);
    pm_geometry_mirror(&g);
    pm_geometry_keypoints(&g, k, 2, 3, NULL);
    near(k[1], 0.8);
    near(k[3], 0.6);
}

/* ---- warps ------------------------------------------------------------------------------- */

enum { WARPED_Y = 23, WARPED_X = 37 };

/* A rotation or a shear, then a mirror and a turn; the other moves do not change the size. */
static void some_warp(struct pm_rng *r, struct pm_geometry *g)
{
    const double angle = pm_rng_uniform(r) - 0.5, shear = 0.6 * (pm_rng_uniform(r) - 0.5);
    const float pad[3] = { 0 };
    const float warp[6] = { (float)cos(angle), (float)(shear - sin(angle)), 3.25f,
                            (float)sin(angle), (float)cos(angle), -2.125f };

    pm_geometry_begin(g, WARPED_Y, WARPED_X);
    pm_geometry_flip(g);
    pm_geometry_warp(g, warp, pad);
    pm_geometry_mirror(g);
    pm_geometry_turn(g);
}

/* Follows a point of the result back to pixels of the original: pixel i spans i..i + 1. */
static void follow_back(const struct pm_geometry *g, double *y, double *x)
{
    const float *w = g->move[1].warp;
    const double was = *y, column = *x;

    *y = column, *x = WARPED_X - was;             /* the turn */
    *x = WARPED_X - *x;                           /* the mirror */
    const double py = *y - 0.5, px = *x - 0.5;
    *x = (double)w[0] * px + (double)w[1] * py + (double)w[2] + 0.5;
    *y = (double)w[3] * px + (double)w[4] * py + (double)w[5] + 0.5;
    *y = WARPED_Y - *y;                           /* the flip */
}

/* Coordinates are rounded to 2^-24 before and after the warp, whose inverse makes them at most
 * twice as large; they are below 4. */
static void warped_points_and_boxes(void **state)
{
    const double tolerance = 3 * 2 * 4 * 0x1p-24;

    (void)state;
    for (uint32_t i = 0; i < CASES; i++) {
        struct pm_rng r = pm_rng_make(7, 2, 3, i);
        struct pm_geometry g;
        float point[2], box[4], corners[8];

        some_warp(&r, &g);
        for (int k = 0; k < 2; k++) {
            point[k] = (float)pm_rng_uniform(&r);
            box[k] = (float)pm_rng_uniform(&r) / 2;
            box[2 + k] = box[k] + (float)pm_rng_uniform(&r) / 2;
        }
        const double want[2] = { point[0], point[1] };
        pm_geometry_points(&g, point, 1);
        double y = (double)point[0] * WARPED_X, x = (double)point[1] * WARPED_Y;
        follow_back(&g, &y, &x);
        assert_true(fabs(y / WARPED_Y - want[0]) < tolerance * WARPED_X / WARPED_Y);
        assert_true(fabs(x / WARPED_X - want[1]) < tolerance * WARPED_X / WARPED_Y);
        for (int k = 0; k < 4; k++)
            corners[2 * k] = box[k / 2 * 2], corners[2 * k + 1] = box[k % 2 * 2 + 1];
        pm_geometry_boxes(&g, box, 1);
        pm_geometry_points(&g, corners, 4);
        for (int k = 0; k < 2; k++) {
            const float *c = corners + k;

            assert_true(fabs((double)box[k] -
                             fmin(fmin(c[0], c[2]), fmin(c[4], c[6]))) < tolerance);
            assert_true(fabs((double)box[2 + k] -
                             fmax(fmax(c[0], c[2]), fmax(c[4], c[6]))) < tolerance);
        }
    }
}

/* Elements whose coordinate is not in the middle between two. */
static void warped_maps(void **state)
{
    static uint16_t values[WARPED_Y * WARPED_X];
    static uint8_t mask[WARPED_Y * WARPED_X], masked[WARPED_Y * WARPED_X];
    static int32_t out[WARPED_Y * WARPED_X];
    const struct pm_label map = { WARPED_Y, WARPED_X, values };

    (void)state;
    for (int k = 0; k < WARPED_Y * WARPED_X; k++)
        values[k] = (uint16_t)(k + 1), mask[k] = (uint8_t)(k % 255 + 1);
    for (uint32_t i = 0; i < 50; i++) {
        struct pm_rng r = pm_rng_make(8, 2, 3, i);
        struct pm_geometry g;
        int inside = 0;

        some_warp(&r, &g);
        pm_geometry_map(&g, &map, 0, out);
        pm_geometry_masks(&g, mask, 1, masked);
        for (int k = 0; k < WARPED_Y * WARPED_X; k++) {
            double y = k / WARPED_Y + 0.5, x = k % WARPED_Y + 0.5;

            follow_back(&g, &y, &x);
            if (fabs(y - rint(y)) < 1e-4 || fabs(x - rint(x)) < 1e-4)
                continue;
            const bool is = y > 0 && x > 0 && y < WARPED_Y && x < WARPED_X;
            const int from = is ? (int)y * WARPED_X + (int)x : -1;
            assert_int_equal(out[k], from + 1);
            assert_int_equal(masked[k], is ? from % 255 + 1 : 0);
            inside += is;
        }
        assert_true(inside > WARPED_Y * WARPED_X / 3);
    }
}

/* ---- maps and masks ---------------------------------------------------------------------- */

/* The map after one move; each element is looked up by its own rule in double precision. -1 is
 * padding. */
static int32_t *moved(const struct pm_move *m, const int32_t *in, int height, int width)
{
    int32_t *out = pm_malloc((size_t)m->height * (size_t)m->width * sizeof *out);

    for (int y = 0; y < m->height; y++)
        for (int x = 0; x < m->width; x++) {
            int sy = y, sx = x;

            if (m->kind == PM_MOVE_WINDOW) {
                sy = y + m->y, sx = x + m->x;
            } else if (m->kind == PM_MOVE_MIRROR) {
                sx = width - 1 - x;
            } else if (m->kind == PM_MOVE_FLIP) {
                sy = height - 1 - y;
            } else if (m->kind == PM_MOVE_TURN) {
                sy = x, sx = width - 1 - y;
            } else if (m->method == PM_RESIZE_ALIGNED) {
                sy = m->height > 1 ? (int)round((double)y * (height - 1) / (m->height - 1)) : 0;
                sx = m->width > 1 ? (int)round((double)x * (width - 1) / (m->width - 1)) : 0;
            } else {
                const double half = m->method == PM_RESIZE_ANTIALIAS ? 0.5 : 0;
                sy = (int)floor((y + half) * height / m->height);
                sx = (int)floor((x + half) * width / m->width);
            }
            const bool in_it = sy >= 0 && sy < height && sx >= 0 && sx < width;
            out[y * m->width + x] = in_it ? in[sy * width + sx] : -1;
        }
    return out;
}

static int32_t *all_moved(const struct pm_geometry *g, const struct pm_label *map)
{
    int32_t *at = pm_malloc((size_t)map->height * (size_t)map->width * sizeof *at);
    int height = map->height, width = map->width;

    for (int i = 0; i < height * width; i++)
        at[i] = map->values[i];
    for (int k = 0; k < g->count; k++) {
        int32_t *next = moved(&g->move[k], at, height, width);

        pm_free(at);
        at = next;
        height = g->move[k].height, width = g->move[k].width;
    }
    return at;
}

/* float32 may select the neighbour at a boundary between two elements, as TensorFlow's does.
 * Such elements are counted; rows and columns are independent, so there are few. */
static void maps_and_masks(void **state)
{
    size_t differ = 0, all = 0, padded = 0;

    (void)state;
    for (uint32_t i = 0; i < CASES; i++) {
        struct pm_rng r = pm_rng_make(4, 5, 6, i);
        struct pm_geometry g;

        some_moves(&r, &g);
        const size_t pixels = (size_t)g.height * (size_t)g.width;
        const size_t count = (size_t)pm_geometry_height(&g) * (size_t)pm_geometry_width(&g);
        struct pm_label map = { g.height, g.width, pm_malloc(2 * pixels) };
        uint8_t *masks = pm_malloc(2 * pixels), *mask = pm_malloc(2 * count);
        for (size_t k = 0; k < pixels; k++) {
            map.values[k] = (uint16_t)k;
            masks[k] = k % 3 == 0;
            masks[pixels + k] = 1;
        }
        int32_t *want = all_moved(&g, &map), *have = pm_malloc(count * sizeof *have);
        pm_geometry_map(&g, &map, -1, have);
        pm_geometry_masks(&g, masks, 2, mask);
        for (size_t k = 0; k < count; k++) {
            differ += have[k] != want[k];
            padded += have[k] == -1;
            assert_int_equal(mask[k], have[k] >= 0 && have[k] % 3 == 0);
            assert_int_equal(mask[count + k], have[k] >= 0);
        }
        all += count;
        pm_free(want);
        pm_free(have);
        pm_free(masks);
        pm_free(mask);
        pm_label_free(&map);
    }
    assert_true(padded > all / 50);
    assert_true(differ < all / 100);
}

/* ---- pictures ---------------------------------------------------------------------------- */

/* A picture under all moves equals the picture under one move after the other, bit for bit, when
 * no resize rounds to 8 bits. After windows and mirrors its pixels are where the map says. */
static void pictures(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < CASES; i++) {
        struct pm_rng r = pm_rng_make(7, 8, 9, i);
        struct pm_geometry g;
        const int channels = i % 2 ? 3 : 1;
        bool resized = false;

        some_moves(&r, &g);
        for (int k = 0; k < g.count; k++) {
            resized |= g.move[k].kind == PM_MOVE_RESIZE;
            if (g.move[k].kind == PM_MOVE_RESIZE && g.move[k].method == PM_RESIZE_ANTIALIAS)
                g.move[k].method = PM_RESIZE_BICUBIC;
        }
        const size_t pixels = (size_t)g.height * (size_t)g.width;
        const size_t count = (size_t)pm_geometry_height(&g) * (size_t)pm_geometry_width(&g);
        struct pm_image8 im = { g.height, g.width, channels, pm_malloc(pixels * 3) };
        for (size_t k = 0; k < pixels * 3; k++)
            im.pixels[k] = (uint8_t)(pm_rng_u32(&r) >> 24);
        struct pm_canvas at_once = pm_canvas_of(pm_view8_of(&im)), slowly = at_once;
        float *out = pm_malloc(count * (size_t)channels * sizeof *out);
        pm_canvas_move(&at_once, &g, 0, g.count, out);
        for (int k = 0; k < g.count; k++)
            pm_canvas_move(&slowly, &g, k, k + 1, NULL);
        if (!slowly.values)
            pm_canvas_move(&slowly, &g, 0, 0, NULL);
        if (memcmp(at_once.values, slowly.values, count * (size_t)channels * sizeof *out) != 0)
            fail_msg("case %u: moves together give other bits than one by one", i);
        struct pm_label map = { g.height, g.width, pm_malloc(2 * pixels) };
        int32_t *from = pm_malloc(count * sizeof *from);
        for (size_t k = 0; k < pixels; k++)
            map.values[k] = (uint16_t)k;
        pm_geometry_map(&g, &map, -1, from);
        for (size_t k = 0; k < count * (size_t)channels && !resized; k++) {
            const int32_t at = from[k / (size_t)channels];
            const float want =
                at < 0 ? (float)(k % (size_t)channels + 1)
                       : im.pixels[(size_t)at * (size_t)channels + k % (size_t)channels];
            assert_true(at_once.values[k] == want);
        }
        pm_canvas_free(&at_once);
        pm_canvas_free(&slowly);
        pm_free(out);
        pm_free(from);
        pm_label_free(&map);
        pm_image_free(&im);
    }
}

/* The padding is the mean of the picture before the move: of the whole window that a crop left, or
 * of a resized picture. */
static void mean_padding(void **state)
{
    uint8_t pixels[6 * 5 * 3];
    const struct pm_image8 im = { 6, 5, 3, pixels };

    (void)state;
    for (int i = 0; i < 6 * 5 * 3; i++)
        pixels[i] = (uint8_t)(i * 37 % 251);
    for (int resized = 0; resized < 2; resized++) {
        struct pm_canvas c = pm_canvas_of(pm_view8_of(&im)), before = c;
        struct pm_geometry g;

        pm_geometry_begin(&g, 6, 5);
        pm_geometry_window(&g, 1, 2, 4, 3, NULL);
        if (resized)
            pm_geometry_resize(&g, 7, 8, PM_RESIZE_BILINEAR);
        const int height = pm_geometry_height(&g), width = pm_geometry_width(&g);
        pm_canvas_move(&before, &g, 0, g.count, NULL);
        pm_geometry_window_mean(&g, -2, -1, height + 5, width + 3);
        pm_canvas_move(&c, &g, 0, g.count, NULL);
        for (int channel = 0; channel < 3; channel++) {
            double mean = 0;

            for (int i = 0; i < height * width; i++)
                mean += before.values[3 * i + channel] / (double)(height * width);
            for (int i = 0; i < (height + 5) * (width + 3); i++) {
                const int y = i / (width + 3) - 2, x = i % (width + 3) - 1;
                const bool inside = y >= 0 && y < height && x >= 0 && x < width;
                const double want =
                    inside ? before.values[3 * (y * width + x) + channel] : mean;

                assert_true(fabs(c.values[3 * i + channel] - want) <= 255 * ulp);
            }
        }
        pm_canvas_free(&before);
        pm_canvas_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_and_boxes),
        cmocka_unit_test(keypoints),
        cmocka_unit_test(warped_points_and_boxes),
        cmocka_unit_test(warped_maps),
        cmocka_unit_test(maps_and_masks),
        cmocka_unit_test(pictures),
        cmocka_unit_test(mean_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
