/* The converter coco: COCO's own pictures and layouts of other projects, where they are
 * installed. */
#include "convert_common.h"

#include <pumice/objects.h>

static void count(const char *split, size_t records, size_t boxes, size_t crowds)
{
    struct pm_dataset *d = opened(in_scratch("d"), split, records);
    struct pm_arena *a = pm_arena_create();
    struct pm_label_map map;
    size_t found = 0, found_crowds = 0;

    assert_int_equal(pm_label_map_of_folder(a, in_scratch("d"), &map), PM_OK);
    for (size_t i = 0; i < records; i++) {
        struct pm_example *e = example(d, i);
        struct pm_objects o;

        assert_int_equal(pm_objects_parse(e, true, split, &o), PM_OK);
        assert_int_equal(pm_objects_resolve(&o, &map, split), PM_OK);
        found += o.count;
        for (size_t k = 0; k < o.count; k++)
            found_crowds += o.item[k].is_crowd;
        pm_objects_free(&o);
        pm_example_destroy(&e);
    }
    assert_int_equal(found, boxes);
    assert_int_equal(found_crowds, crowds);
    pm_arena_destroy(&a);
    pm_dataset_close(&d);
}

/* nose, left_eye, right_eye, left_ear ...: left and right are exchanged in mirrored pictures. */
static void assert_mirrored(void)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_dataset_info info;

    assert_int_equal(pm_dataset_describe(a, in_scratch("d"), &info), PM_OK);
    assert_int_equal(info.mirrored_points.count, 17);
    for (int k = 0; k < 17; k++)
        assert_int_equal(info.mirrored_points.v[k], k == 0 ? 0 : k % 2 ? k + 1 : k - 1);
    pm_arena_destroy(&a);
}

static void mini(void **state)
{
    const char *src = shared_data("coco-mini");

    (void)state;
    scratch_make();
    assert_int_equal(pm_dataset_convert("coco", src, in_scratch("d"), NULL), PM_OK);
    count("train", 80, 739, 8);
    count("val", 40, 292, 2);
    assert_mirrored();
    scratch_remove();
}

static void layouts(void **state)
{
    static const char *const folders[] = { "coco", "coco_instances", "coco_person_keypoints" };
    static const char *const others[] = { "labels", "captions", "image_info", "panoptic" };
    char name[300], options[300];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(folders); i++) {
        snprintf(name, sizeof name, "layouts/coco_dataset/%s", folders[i]);
        const char *src = shared_data(name);
        scratch_make();
        if (pm_dataset_convert("coco", src, in_scratch("d"), "masks=true") < 0)
            fail_msg("%s: %s", name, pm_error_text());
        count("train", 1, 1, 0);
        count("val", 1, 2, 1);
        scratch_remove();
    }
    const char *src = shared_data("layouts/coco_dataset/coco_stuff");
    scratch_make();
    assert_int_equal(pm_dataset_convert("coco", src, in_scratch("d"),
                                        "annotations=annotations/stuff_val.json images=images/val "
                                        "split=val masks=true"), PM_OK);
    count("val", 1, 1, 1);
    /* Files without boxes are refused. */
    for (size_t i = 0; i < PM_COUNT(others); i++) {
        snprintf(name, sizeof name, "layouts/coco_dataset/coco_%s", others[i]);
        src = shared_data(name);
        assert_fails(pm_dataset_convert("coco", src, in_scratch("e"), NULL), PM_EDATA,
                     "has neither annotations/instances", "give annotations and images");
        snprintf(options, sizeof options, "annotations=annotations/%s_val.json images=images/val",
                 others[i]);
        assert_fails(pm_dataset_convert("coco", src, in_scratch("e"), options), PM_EDATA,
                     "is this a file of instances?");
    }
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mini),
        cmocka_unit_test(layouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
