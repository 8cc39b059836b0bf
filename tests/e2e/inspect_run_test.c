/* dataset inspect with boxes: pictures with drawn objects. */
#include <pumice/draw.h>
#include <pumice/objects.h>

#include "program.h"

/* The number of pixels of a PNG with a colour. */
static int pixels_of(const char *path, struct pm_color c)
{
    struct pm_image8 im;
    char *data = NULL;
    size_t size = 0;
    int n = 0;

    if (pm_file_read(path, &data, &size) < 0)
        fail_msg("%s", pm_error_text());
    assert_int_equal(pm_image_decode(data, size, 3, 0, path, &im), PM_OK);
    assert_true(im.height >= 600 && im.width >= 600);
    for (int i = 0; i < im.height * im.width; i++)
        n += im.pixels[3 * i] == c.r && im.pixels[3 * i + 1] == c.g && im.pixels[3 * i + 2] == c.b;
    pm_image_free(&im);
    pm_free(data);
    return n;
}

static void boxes_are_drawn(void **state)
{
    (void)state;
    check(run(NULL, "dataset make shapes %s train=20 validation=0 test=0", in("shapes")), 0);
    check(run(NULL, "dataset inspect %s --records 20 --boxes %s", in("shapes"), in("drawn/a")), 0);
    int n[4] = { 0 };
    for (int i = 0; i < 20; i++)
        for (size_t k = 0; k < 4; k++)
            n[k] += pixels_of(in("drawn/a/shapes_train_%05d.png", i), pm_draw_color(k));
    for (size_t k = 0; k < 4; k++)
        if (n[k] <= 200)
            fail_msg("class %zu has %d pixels", k, n[k]);
}

/* Pictures for classification have no boxes: nothing is written, and nothing fails. */
static void without_boxes(void **state)
{
    (void)state;
    check(run(NULL, "dataset inspect %s --pictures %s --records 3", in("data"), in("raw/a")), 0);
    check(run(NULL, "dataset convert folder %s %s validation=0.5", in("raw"), in("classes")), 0);
    check(run(NULL, "dataset inspect %s --boxes %s", in("classes"), in("none")), 0);
    assert_false(pm_file_exists(in("none/classes_train_00000.png")));
}

static int world(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_are_drawn),
        cmocka_unit_test(without_boxes),
    };

    return cmocka_run_group_tests(tests, world, drop_world);
}
