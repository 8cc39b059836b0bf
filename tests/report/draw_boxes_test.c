/* Boxes with captions, masks, keypoints and lines: everything stays inside the picture, small boxes
 * are not hidden by large ones, captions avoid each other, sizes grow with the picture. */
#include <math.h>
#include <pumice/draw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct pm_color red = { 200, 10, 20 }, blue = { 20, 10, 201 };

static struct pm_image8 blank(int height, int width, int channels)
{
    return (struct pm_image8){ height, width, channels,
                               pm_calloc(1, (size_t)height * (size_t)width * (size_t)channels) };
}

/* Returns the number of pixels whose colour is c; *rows: the number of rows that have one. */
static int count(const struct pm_image8 *im, struct pm_color c, int *rows)
{
    int n = 0, with = 0;

    for (int y = 0; y < im->height; y++) {
        const int before = n;
        for (int x = 0; x < im->width; x++) {
            const uint8_t *p = im->pixels + 3 * ((size_t)y * (size_t)im->width + (size_t)x);
            n += p[0] == c.r && p[1] == c.g && p[2] == c.b;
        }
        with += n > before;
    }
    if (rows)
        *rows = with;
    return n;
}

static struct pm_marked_box box(float y0, float x0, float y1, float x1, struct pm_color c)
{
    return (struct pm_marked_box){ .box = { y0, x0, y1, x1 }, .color = c };
}

static void outlines_are_exact(void **state)
{
    struct pm_image8 im = blank(100, 200, 3);
    const struct pm_marked_box one = box(0.1f, 0.1f, 0.5f, 0.6f, red);
    int rows;

    (void)state;
    pm_draw_boxes(&im, &one, 1); /* rows 10..49, columns 20..119, one pixel wide */
    assert_int_equal(pm_draw_line_width(&im), 1);
    assert_int_equal(count(&im, red, &rows), 2 * 100 + 2 * 38);
    assert_int_equal(rows, 40);
    pm_image_free(&im);
}

static void small_boxes_stay_visible(void **state)
{
    /* Given first, the small box would be hidden by the edge of the large one. */
    const struct pm_marked_box two[] = { box(0.095f, 0.3f, 0.125f, 0.33f, blue),
                                         box(0.1f, 0.1f, 0.9f, 0.9f, red) };
    struct pm_image8 im = blank(200, 200, 3), alone = blank(200, 200, 3);

    (void)state;
    pm_draw_boxes(&im, two, 2);
    pm_draw_boxes(&alone, two, 1);
    assert_true(count(&alone, blue, NULL) > 10);
    assert_int_equal(count(&im, blue, NULL), count(&alone, blue, NULL));
    pm_image_free(&alone);
    pm_image_free(&im);
}

/* A line covers one pixel of each of its rows or columns, whichever are more; one that leaves the
 * image is cut there and keeps its direction, and one without a length is a point. */
static void lines(void **state)
{
    static const struct { double y0, x0, y1, x1; int pixels, rows; } of[] = {
        { 0.1, 0.1, 0.1, 0.6, 101, 1 },  { 0.5, 0.6, 0.1, 0.6, 41, 41 },
        { 0.1, 0.1, 0.5, 0.6, 101, 41 }, { 0.5, 0.5, 0.5, 0.5, 1, 1 },
        { 0.5, -1, 0.5, 2, 200, 1 },     { 0.5, NAN, 0.5, 0.5, 0, 0 },
        { 0.5, 0.5, INFINITY, 0.5, 0, 0 },
        { 0.5, 0.5, 10.5, 20.5, 100, 26 }, /* 1 row in 4 columns: from row 50 to row 75 */
        { 20.5, -39.5, 0.5, 0.5, 101, 26 }, { 0.5, 0.5, 0.5, 1e30, 100, 1 },
        { -9, 0.3, 0.9, 1.5, 0, 0 },       /* it passes above and to the right */
        { 0.5, -3, 0.5, -2, 0, 0 },         { 5, 0.5, 5, 0.5, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(of); i++) {
        struct pm_image8 im = blank(100, 200, 3);
        int rows;

        pm_draw_line(&im, of[i].y0, of[i].x0, of[i].y1, of[i].x1, red);
        assert_int_equal(count(&im, red, &rows), of[i].pixels);
        assert_int_equal(rows, of[i].rows);
        pm_image_free(&im);
    }
}

static void strange_boxes_are_harmless(void **state)
{
    const float v[] = { -1e30f, -1, 0, 0.5f, 1, 1.5f, 1e30f, NAN, INFINITY, -INFINITY };
    const size_t n = PM_COUNT(v);
    struct pm_marked_box list[100];
    const uint8_t mask[6] = { 0, 1, 1, 0, 1, 0 };

    (void)state;
    for (int side = 1; side <= 61; side += 20)
        for (int channels = 1; channels <= 3; channels += 2) {
            struct pm_image8 im = blank(side, side / 2 + 1, channels);

            for (size_t i = 0; i < n * n; i++) {
                list[i] = box(v[i / n], v[i % n], v[(i + 3) % n], v[(i / n + i) % n], red);
                list[i].text = i % 3 ? "a rather long caption" : i % 2 ? "" : NULL;
                list[i].dashed = i % 2;
            }
            pm_draw_boxes(&im, list, n * n);
            for (size_t i = 0; i < n * n; i++)
                pm_draw_point(&im, (double)v[i / n], (double)v[i % n], red, i % 2);
            pm_draw_mask(&im, mask, 2, 3, red);
            pm_image_free(&im);
        }
}

static void boxes_without_an_area_are_seen(void **state)
{
    const struct pm_marked_box none[] = { box(0.5f, 0.5f, 0.5f, 0.5f, red),
                                          box(NAN, 0, 1, 1, blue) };
    struct pm_image8 im = blank(50, 50, 3);

    (void)state;
    pm_draw_boxes(&im, none, 2);
    assert_int_equal(count(&im, red, NULL), 1);
    assert_int_equal(count(&im, blue, NULL), 0);
    pm_image_free(&im);
}

static void captions_avoid_each_other(void **state)
{
    /* Three boxes in one place: each caption keeps all of its background. */
    static const struct pm_color colors[] = { { 250, 240, 20 }, { 240, 250, 30 },
                                              { 250, 250, 40 } };
    struct pm_image8 im = blank(300, 300, 3);
    struct pm_marked_box list[3];
    int n[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        list[i] = box(0.4f, 0.4f, 0.6f, 0.6f, colors[i]);
        list[i].text = "one";
    }
    pm_draw_boxes(&im, list, 3);
    for (int i = 0; i < 3; i++)
        n[i] = count(&im, colors[i], NULL);
    assert_true(n[0] > 100 && n[1] > 100 && n[2] > 100);
    pm_image_free(&im);
}

static void captions_stay_inside(void **state)
{
    struct pm_image8 wide = blank(40, 200, 3), narrow = blank(40, 50, 3);
    struct pm_marked_box edge = box(0, 0.9f, 0.2f, 1, red);
    int rows;

    (void)state;
    edge.text = "caption at the edge";
    pm_draw_boxes(&wide, &edge, 1);
    /* The caption is as wide as its text, though the box is at the right edge. */
    assert_true(count(&wide, red, &rows) > 19 * 6 * 5);
    assert_true(rows >= 10);
    pm_draw_boxes(&narrow, &edge, 1); /* cut */
    assert_true(count(&narrow, red, NULL) > 100);
    pm_image_free(&narrow);
    pm_image_free(&wide);
}

static void sizes_grow_with_the_picture(void **state)
{
    const struct pm_image8 small = { 80, 100, 3, NULL }, photo = { 3000, 4000, 3, NULL };

    (void)state;
    assert_int_equal(pm_draw_line_width(&small), 1);
    assert_int_equal(pm_draw_line_width(&photo), 10);
}

enum { PART_SIDE = 1200 };

static void draw_all(struct pm_image8 *im, int side)
{
    static const uint8_t mask[4] = { 1, 0, 0, 0 };
    struct pm_marked_box one = box(0.6f, 0.6f, 0.9f, 0.9f, red);

    one.text = "a name";
    pm_draw_boxes_at(im, side, &one, 1);
    pm_draw_point_at(im, side, 0.2, 0.8, red, false);
    pm_draw_line_at(im, side, 0.55, 0.55, 0.55, 0.95, red);
    pm_draw_mask_at(im, side, mask, 2, 2, (struct pm_color){ 255, 255, 255 });
}

/* Parts of a large image have the lines and letters of a small one; without a side, or with the
 * image's own, those of the image. */
static void sizes_of_parts(void **state)
{
    struct pm_image8 own = blank(PART_SIDE, PART_SIDE, 3), part = blank(PART_SIDE, PART_SIDE, 3);
    struct pm_image8 same = blank(PART_SIDE, PART_SIDE, 3);
    const size_t bytes = (size_t)3 * PART_SIDE * PART_SIDE;

    (void)state;
    draw_all(&own, 0);
    draw_all(&same, PART_SIDE);
    draw_all(&part, 400);
    assert_memory_equal(own.pixels, same.pixels, bytes);
    assert_int_equal(pm_draw_line_width(&own), 3);
    /* The outline and the line are a third as wide, the label and the disc have less area. */
    assert_true(count(&part, red, NULL) * 2 < count(&own, red, NULL));
    assert_true(count(&part, red, NULL) > 4 * PART_SIDE * 3 / 10);
    pm_image_free(&own);
    pm_image_free(&same);
    pm_image_free(&part);
}

static void crowds_are_dashed(void **state)
{
    struct pm_image8 whole = blank(200, 200, 3), dashed = blank(200, 200, 3);
    struct pm_marked_box one = box(0.1f, 0.1f, 0.9f, 0.9f, red);

    (void)state;
    pm_draw_boxes(&whole, &one, 1);
    one.dashed = true;
    pm_draw_boxes(&dashed, &one, 1);
    const int a = count(&whole, red, NULL), b = count(&dashed, red, NULL);
    assert_true(b > a / 2 && b < 3 * a / 4); /* 4 of 7 */
    pm_image_free(&whole);
    pm_image_free(&dashed);
}

static bool has_color(const struct pm_image8 *im, int y, int x, struct pm_color c)
{
    const uint8_t *p = im->pixels + 3 * ((size_t)y * (size_t)im->width + (size_t)x);

    return p[0] == c.r && p[1] == c.g && p[2] == c.b;
}

/* A box of 40 x 80 pixels around 100, 150: flat, turned clockwise, and by 45 degrees. The front
 * edge is three pixels thick, the others one. */
static void turned_boxes_show_their_front(void **state)
{
    static const float angles[] = { 0, 1.57079637F, -1.57079637F, 0.78539816F };
    /* A pixel inwards of the middle of each edge, from the front one clockwise. */
    static const int inner[][4][2] = {
        { { 100, 189 }, { 119, 150 }, { 100, 111 }, { 81, 150 } },
        { { 139, 150 }, { 100, 131 }, { 61, 150 }, { 100, 169 } },
        { { 61, 150 }, { 100, 169 }, { 139, 150 }, { 100, 131 } },
    };
    struct pm_marked_box one = box(0.3f, 0.3f, 0.7f, 0.7f, red);

    (void)state;
    one.turned = true;
    for (int n = 0; n < 4; n++) {
        struct pm_image8 im = blank(200, 300, 3), dashed = blank(200, 300, 3);

        memcpy(one.rotated, (const float[5]){ 0.5f, 0.5f, 0.2f, 80.0f / 300, angles[n] },
               sizeof one.rotated);
        one.dashed = false;
        pm_draw_boxes(&im, &one, 1);
        for (int k = 0; n < 3 && k < 4; k++)
            assert_int_equal(has_color(&im, inner[n][k][0], inner[n][k][1], red), k == 0);
        if (n == 3) { /* 28.28 pixels from the centre to the front edge along both axes */
            assert_true(has_color(&im, 128, 178, red));
            assert_false(has_color(&im, 72, 121, red) && has_color(&im, 71, 122, red) &&
                         has_color(&im, 73, 120, red));
            assert_true(has_color(&im, 128 - 10, 178 + 10, red));
        }
        assert_false(has_color(&im, 100, 150, red));
        one.dashed = true;
        pm_draw_boxes(&dashed, &one, 1);
        const int a = count(&im, red, NULL), b = count(&dashed, red, NULL);

        assert_true(b > a / 2 && b < 4 * a / 5);
        pm_image_free(&dashed);
        pm_image_free(&im);
    }
}

/* Any numbers stay inside the picture. */
static void turned_boxes_stay_inside(void **state)
{
    static const float bad[] = { NAN, INFINITY, -1e30F, 1e9F, -3, 0 };
    struct pm_marked_box one = box(0, 0, 1, 1, red);
    struct pm_image8 im = blank(30, 20, 3);

    (void)state;
    one.turned = true;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (int k = 0; k < 5; k++) {
            memcpy(one.rotated, (const float[5]){ 0.5f, 0.5f, 0.2f, 0.4f, 1 }, sizeof one.rotated);
            one.rotated[k] = bad[i];
            pm_draw_boxes(&im, &one, 1); /* the sanitizers check it */
        }
    assert_true(count(&im, red, NULL) > 20);
    pm_image_free(&im);
}

static void masks_tint_their_pixels(void **state)
{
    struct pm_image8 im = blank(40, 40, 3);
    uint8_t mask[20 * 20] = { 0 };

    (void)state;
    for (int y = 5; y < 15; y++)
        memset(mask + 20 * y + 5, 1, 10);
    pm_draw_mask(&im, mask, 20, 20, (struct pm_color){ 255, 255, 255 });
    for (int y = 0; y < 40; y++)
        for (int x = 0; x < 40; x++) {
            const int v = im.pixels[3 * (y * 40 + x)];
            const int out = y < 10 || y >= 30 || x < 10 || x >= 30;
            const int rim = y == 10 || y == 29 || x == 10 || x == 29;

            assert_int_equal(v, out ? 0 : rim ? 230 : 89);
        }
    pm_image_free(&im);
}

static void hidden_points_are_rings(void **state)
{
    struct pm_image8 seen = blank(41, 41, 3), hidden = blank(41, 41, 3);
    const size_t middle = 3 * (20 * 41 + 20);

    (void)state;
    pm_draw_point(&seen, 20.5 / 41, 20.5 / 41, red, false);
    pm_draw_point(&hidden, 20.5 / 41, 20.5 / 41, red, true);
    assert_int_equal(seen.pixels[middle], red.r);
    assert_int_equal(hidden.pixels[middle], 0);
    assert_true(count(&hidden, red, NULL) >= 8);
    assert_int_equal(seen.pixels[middle + 9], red.r);
    assert_int_equal(hidden.pixels[middle + 9], red.r);
    assert_int_equal(hidden.pixels[middle - 9], red.r); /* the middle is the middle */
    pm_image_free(&seen);
    pm_image_free(&hidden);
}

static void canvas_enlarges_by_whole_factors(void **state)
{
    struct pm_image8 in = blank(30, 100, 1), out;

    (void)state;
    in.pixels[99] = 7;
    pm_draw_canvas(&in, 350, &out);
    assert_int_equal(out.width, 400);
    assert_int_equal(out.height, 120);
    assert_int_equal(out.channels, 3);
    assert_int_equal(out.pixels[3 * (3 * 400 + 396) + 2], 7);
    pm_image_free(&out);
    pm_draw_canvas(&in, 100, &out);
    assert_int_equal(out.width, 100);
    pm_image_free(&out);
    pm_image_free(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outlines_are_exact),
        cmocka_unit_test(turned_boxes_show_their_front),
        cmocka_unit_test(turned_boxes_stay_inside),
        cmocka_unit_test(small_boxes_stay_visible),
        cmocka_unit_test(lines),
        cmocka_unit_test(strange_boxes_are_harmless),
        cmocka_unit_test(boxes_without_an_area_are_seen),
        cmocka_unit_test(captions_avoid_each_other),
        cmocka_unit_test(captions_stay_inside),
        cmocka_unit_test(sizes_grow_with_the_picture), cmocka_unit_test(sizes_of_parts),
        cmocka_unit_test(crowds_are_dashed),
        cmocka_unit_test(masks_tint_their_pixels),
        cmocka_unit_test(hidden_points_are_rings),
        cmocka_unit_test(canvas_enlarges_by_whole_factors),
    };

    setenv("PM_FONT", "none", 1); /* draw_font_test tests the letters of a font */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
