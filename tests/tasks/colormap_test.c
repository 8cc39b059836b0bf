/* Colours of classes: each colormap's entries, and the colormap of known class names. */
#include "base/unit.h"

#include "tasks/colormap.h"

static void assert_color(enum pm_colormap map, int label, int r, int g, int b)
{
    const struct pm_color c = pm_colormap_color(map, label);

    if (c.r != r || c.g != g || c.b != b)
        fail_msg("map %d, class %d: (%d, %d, %d)", map, label, c.r, c.g, c.b);
}

static void colors(void **state)
{
    (void)state;
    assert_color(PM_COLORMAP_PASCAL, 0, 0, 0, 0);
    assert_color(PM_COLORMAP_PASCAL, 1, 128, 0, 0);
    assert_color(PM_COLORMAP_PASCAL, 2, 0, 128, 0);
    assert_color(PM_COLORMAP_PASCAL, 3, 128, 128, 0);
    assert_color(PM_COLORMAP_PASCAL, 15, 192, 128, 128);
    assert_color(PM_COLORMAP_PASCAL, 255, 224, 224, 192);
    assert_color(PM_COLORMAP_PASCAL, 256, 0, 0, 32);
    assert_color(PM_COLORMAP_PASCAL, 511, 224, 224, 224);
    assert_color(PM_COLORMAP_CITYSCAPES, 0, 128, 64, 128);
    assert_color(PM_COLORMAP_CITYSCAPES, 18, 119, 11, 32);
    assert_color(PM_COLORMAP_CITYSCAPES, 19, 0, 0, 0);
    assert_color(PM_COLORMAP_ADE20K, 1, 120, 120, 120);
    assert_color(PM_COLORMAP_ADE20K, 150, 0x5c, 0, 0xff);
    assert_color(PM_COLORMAP_CAMVID, 0, 128, 128, 128);
    assert_color(PM_COLORMAP_CAMVID, 3, 128, 64, 128);
    assert_color(PM_COLORMAP_CAMVID, 4, 0, 0, 192);
    assert_color(PM_COLORMAP_CAMVID, 10, 0, 128, 192);
    assert_color(PM_COLORMAP_CAMVID, 11, 0, 0, 0); /* Unlabelled */
    assert_color(PM_COLORMAP_CAMVID_FULL, 0, 64, 128, 64);
    assert_color(PM_COLORMAP_CAMVID_FULL, 29, 192, 192, 0);
    assert_color(PM_COLORMAP_CAMVID_FULL, 30, 64, 192, 0); /* Wall: Void has no number */
    assert_color(PM_COLORMAP_AUTO, 1, 128, 0, 0);
    assert_int_equal(pm_colormap_entries(PM_COLORMAP_ADE20K), 151);
    assert_int_equal(pm_colormap_raw(PM_COLORMAP_CITYSCAPES, 0), 7);
    assert_int_equal(pm_colormap_raw(PM_COLORMAP_CITYSCAPES, 15), 28);
    assert_int_equal(pm_colormap_raw(PM_COLORMAP_CITYSCAPES, 18), 33);
    assert_int_equal(pm_colormap_raw(PM_COLORMAP_PASCAL, 15), 15);
}

static void colors_by_name(void **state)
{
    static const char *const names[] = { "pascal", "cityscapes", "ade20k", "camvid",
                                         "camvid_full" };
    const char *camvid[PM_CAMVID_CLASSES], *all[PM_CAMVID_ALL - 1];

    (void)state;
    for (int i = 0; i < (int)PM_COUNT(names); i++)
        assert_int_equal(pm_colormap_find(names[i]), PM_COLORMAP_PASCAL + i);
    assert_int_equal(pm_colormap_find("rainbow"), PM_COLORMAP_AUTO);
    assert_int_equal(pm_colormap_find(NULL), PM_COLORMAP_AUTO);
    for (int i = 0; i < PM_CAMVID_CLASSES; i++)
        camvid[i] = pm_camvid_classes[i].name;
    for (int i = 0; i < PM_CAMVID_ALL - 1; i++)
        all[i] = pm_camvid_all[pm_camvid_full_class(i)].name;
    assert_string_equal(pm_camvid_all[PM_CAMVID_VOID].name, "Void");
    /* Data folders of earlier versions name no colours. */
    assert_string_equal(pm_known_colormap(camvid, PM_CAMVID_CLASSES), "camvid");
    assert_string_equal(pm_known_colormap(all, PM_CAMVID_ALL - 1), "camvid_full");
    camvid[3] = "Street";
    assert_null(pm_known_colormap(camvid, PM_CAMVID_CLASSES));
    camvid[3] = NULL;
    assert_null(pm_known_colormap(camvid, PM_CAMVID_CLASSES));
    assert_null(pm_known_colormap(NULL, PM_CAMVID_CLASSES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colors),
        cmocka_unit_test(colors_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
