/* The built-in bars: pictures agree with their rotated boxes, boxes are as promised. */
#include <math.h>

#include "convert_common.h"

#include <pumice/objects.h>

#include "data/rotated_box.h"

enum { SIZE = 64, PICTURES = 200 };

/* Mean colour of the pixels whose centre is within `grow` times the rectangle but not in `but`
 * times. */
static void mean_colour(const struct pm_image8 *im, const struct pm_rectangle *r, double grow,
                        double but, double out[3])
{
    size_t n = 0;

    out[0] = out[1] = out[2] = 0;
    for (int y = 0; y < im->height; y++)
        for (int x = 0; x < im->width; x++) {
            const double dy = y + 0.5 - r->cy, dx = x + 0.5 - r->cx;
            const double u = fabs(dx * cos(r->angle) + dy * sin(r->angle)) / (r->w / 2);
            const double v = fabs(dy * cos(r->angle) - dx * sin(r->angle)) / (r->h / 2);

            if (fmax(u, v) > grow || fmax(u, v) <= but)
                continue;
            for (int k = 0; k < 3; k++)
                out[k] += im->pixels[3 * (y * im->width + x) + k];
            n++;
        }
    for (int k = 0; k < 3; k++)
        out[k] /= (double)(n ? n : 1);
}

static void check_bar(const struct pm_image8 *im, const struct pm_objects *o, size_t i,
                      size_t *visible)
{
    struct pm_rectangle r;
    double inner[3], outer[3], around[4];

    pm_rectangle_of_box(o->item[i].rotated, SIZE, SIZE, &r);
    assert_true(r.w / r.h > 2 - 1e-4 && r.w / r.h < 6 + 1e-4);
    assert_true(r.w > 0.25 * SIZE - 1e-4 && r.w < 0.6 * SIZE + 1e-4);
    assert_true(fabs(r.angle) <= 1.5708);
    assert_true(pm_rectangle_inside(&r, SIZE + 1e-4, SIZE + 1e-4) > 1 - 1e-4);
    pm_rectangle_around(&r, around);
    for (int k = 0; k < 4; k++)
        assert_true(fabs((double)o->item[i].box[k] * SIZE - around[k]) < 1e-4);
    /* The bar has another colour than what is around it: its ink is 0.45 of a unit cube, 115 of
     * 255, from the two colours of the ground. Neighbours may be in the margin. */
    mean_colour(im, &r, 0.7, 0, inner);
    mean_colour(im, &r, 1.9, 1.3, outer);
    *visible += sqrt((inner[0] - outer[0]) * (inner[0] - outer[0]) +
                     (inner[1] - outer[1]) * (inner[1] - outer[1]) +
                     (inner[2] - outer[2]) * (inner[2] - outer[2])) > 40;
}

static void bars(void **state)
{
    size_t counts[7] = { 0 }, all = 0, visible = 0, quarter[4] = { 0 };

    (void)state;
    scratch_make();
    if (pm_bars_make(in_scratch("bars"), SIZE, PICTURES, 10, 0, 1) < 0)
        fail_msg("%s", pm_error_text());
    struct pm_dataset *d = opened(in_scratch("bars"), "train", PICTURES);
    for (size_t i = 0; i < PICTURES; i++) {
        struct pm_example *e = example(d, i);
        struct pm_image8 im = image(e, "image/encoded", 3);
        struct pm_objects o;

        assert_int_equal(pm_objects_parse(e, false, "record", &o), PM_OK);
        assert_true(o.has & PM_HAS_ROTATED && o.count >= 1 && o.count <= 6);
        assert_true(im.height == SIZE && im.width == SIZE);
        counts[o.count]++;
        all += o.count;
        for (size_t k = 0; k < o.count; k++) {
            const double turn = ((double)o.item[k].rotated[4] + 1.5708) / 3.1416 * 4;

            assert_string_equal(o.item[k].text, "bar");
            assert_int_equal(o.item[k].label, 1);
            check_bar(&im, &o, k, &visible);
            quarter[(int)fmin(fmax(turn, 0), 3)]++;
        }
        pm_objects_free(&o);
        pm_image_free(&im);
        pm_example_destroy(&e);
    }
    pm_dataset_close(&d);
    assert_true(counts[1] > 10 && counts[4] + counts[5] + counts[6] > 30);
    assert_true(visible > 0.95 * (double)all);
    for (int k = 0; k < 4; k++) /* all angles occur */
        assert_true(quarter[k] > all / 6);
    scratch_remove();
}

/* The same seed draws the same bytes, another one others; sizes are checked. */
static void repeatable(void **state)
{
    char *text[3] = { NULL };
    size_t size[3] = { 0 };

    (void)state;
    scratch_make();
    for (int k = 0; k < 3; k++) {
        char name[40];

        snprintf(name, sizeof name, "b%d", k);
        assert_int_equal(pm_bars_make(in_scratch(name), SIZE, 20, 0, 0, k == 2 ? 7 : 3), PM_OK);
        snprintf(name, sizeof name, "b%d/bars_train_00000-of-00001.tfrecord", k);
        assert_int_equal(pm_file_read(in_scratch(name), &text[k], &size[k]), PM_OK);
    }
    assert_true(size[0] == size[1] && !memcmp(text[0], text[1], size[0]));
    assert_false(size[0] == size[2] && !memcmp(text[0], text[2], size[0]));
    for (int k = 0; k < 3; k++)
        pm_free(text[k]);
    assert_fails(pm_bars_make(in_scratch("x"), 31, 1, 1, 1, 1), PM_ECONFIG, "size 31",
                 "32..1024");
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(bars), cmocka_unit_test(repeatable) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
