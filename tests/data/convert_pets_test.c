/* The converter oxford_pets: TensorFlow's split, classes and their numbers, heads and whole
 * animals, and mistakes. */
#include "boxes_common.h"

/* Python 3: random.seed(42); l = list(range(10)); random.shuffle(l) */
static const int order[10] = { 7, 3, 2, 8, 5, 6, 9, 4, 0, 1 };

/* The names of the list, with the numbers of their classes. */
static const char *const names[10] = {
    "Abyssinian_1", "Abyssinian_2", "yorkshire_terrier_10", "Bengal_3",  "beagle_4",
    "beagle_5",     "Bengal_6",     "yorkshire_terrier_11", "basset_hound_7", "Abyssinian_8",
};
static const int ids[10] = { 1, 1, 37, 6, 5, 5, 6, 37, 4, 1 };

static void put_xml(const char *name, const char *objects)
{
    char path[100], text[1000];

    snprintf(path, sizeof path, "p/annotations/xmls/%s.xml", name);
    snprintf(text, sizeof text, "<annotation><size><width>%d</width><height>%d</height></size>%s"
             "</annotation>", W, H, objects);
    put_file(path, text);
}

static const char head[] = "<object><name>cat</name><pose>Frontal</pose><truncated>1</truncated>"
                           "<difficult>0</difficult><bndbox><xmin>1</xmin><ymin>0</ymin>"
                           "<xmax>3</xmax><ymax>1</ymax></bndbox></object>";

/* Ten pictures of H x W = 2 x 3 pixels; columns: whether the list has the numbers of classes. */
static void make_pets(bool columns)
{
    char text[1000] = "# Image CLASS-ID SPECIES BREED ID\n";

    for (int i = 0; i < 10; i++) {
        static const uint8_t map[H * W] = { 2, 3, 1, 2, 2, 2 };
        char path[100];

        snprintf(path, sizeof path, "p/images/%s.jpg", names[i]);
        put_picture(path, 10 * i);
        snprintf(path, sizeof path, "p/annotations/trimaps/%s.png", names[i]);
        put_map(path, 8, 0, map);
        put_xml(names[i], head);
        snprintf(text + strlen(text), sizeof text - strlen(text), columns ? "%s %d 1 1\n" : "%s\n",
                 names[i], ids[i]);
    }
    put_file("p/annotations/trainval.txt", text);
}

static int convert(const char *src, const char *dst, const char *options)
{
    return pm_dataset_convert("oxford_pets", in_scratch(src), in_scratch(dst), options);
}

/* The record's picture must have this name. */
static void assert_name(const struct record *r, const char *name)
{
    const uint8_t *data = NULL;
    size_t size = 0;

    assert_int_equal(pm_example_bytes(r->e, "image/filename", &data, &size), 1);
    assert_int_equal(size, strlen(name) + 4);
    assert_memory_equal(data, name, strlen(name));
}

/* The class of a name and its number. */
static void assert_class(const struct pm_objects *o, int i)
{
    const size_t length = (size_t)(strrchr(names[i], '_') - names[i]);

    assert_int_equal(strlen(o->item[0].text), length);
    assert_memory_equal(o->item[0].text, names[i], length);
    assert_int_equal(o->item[0].label, ids[i]);
}

static void heads(void **state)
{
    (void)state;
    scratch_make();
    make_pets(true);
    assert_int_equal(convert("p", "d", "num_shards=1"), PM_OK);
    for (int i = 0; i < 10; i++) {
        struct record r = record_open("d", i < 7 ? "train" : "val", i < 7 ? 7 : 3,
                                      (size_t)(i < 7 ? i : i - 7));

        assert_name(&r, names[order[i]]);
        assert_class(&r.o, order[i]);
        assert_object(&r.o, 0, r.o.item[0].text, ids[order[i]], 0, 1, 1, 3);
        assert_true(r.o.item[0].truncated && !r.o.item[0].difficult);
        assert_string_equal(r.o.item[0].view, "Frontal");
        record_close(&r);
    }
    scratch_remove();
}

static void whole_animals(void **state)
{
    (void)state;
    scratch_make();
    make_pets(true);
    put_file("p/annotations/test.txt", "Bengal_6 6 1 3\nbeagle_5 5 2 4\n");
    assert_int_equal(convert("p", "d", "num_shards=1 heads=false validation=0"),
                     PM_OK);
    struct record r = record_open("d", "train", 10, 0);
    assert_name(&r, names[order[0]]);
    assert_object(&r.o, 0, r.o.item[0].text, ids[order[0]], 0, 1, 1, 3);
    assert_true(r.o.item[0].area == 2);
    uint8_t mask[H * W];
    assert_int_equal(pm_objects_mask(&r.o, 0, "record", mask), PM_OK);
    assert_memory_equal(mask, ((const uint8_t[]){ 0, 1, 1, 0, 0, 0 }), sizeof mask);
    record_close(&r);
    r = record_open("d", "test", 2, 1);
    assert_name(&r, "beagle_5");
    assert_class(&r.o, 5);
    record_close(&r);
    scratch_remove();
}

/* Without numbers the classes have them by name, as if upper and lower case were equal. */
static void names_only(void **state)
{
    (void)state;
    scratch_make();
    make_pets(false);
    assert_int_equal(convert("p", "d", "num_shards=1 validation=0 seed=1"), PM_OK);
    struct pm_arena *a = pm_arena_create();
    struct pm_label_map map;
    assert_int_equal(pm_label_map_of_folder(a, in_scratch("d"), &map), PM_OK);
    assert_int_equal(map.count, 5);
    assert_int_equal(pm_label_map_find(&map, "Abyssinian"), 1);
    assert_int_equal(pm_label_map_find(&map, "basset_hound"), 2);
    assert_int_equal(pm_label_map_find(&map, "beagle"), 3);
    assert_int_equal(pm_label_map_find(&map, "Bengal"), 4);
    assert_int_equal(pm_label_map_find(&map, "yorkshire_terrier"), 5);
    pm_arena_destroy(&a);
    scratch_remove();
}

static void mistakes(void **state)
{
    static const uint8_t other[2 * H * W] = { 0 };

    (void)state;
    scratch_make();
    make_pets(true);
    assert_fails(convert("nowhere", "d", ""), PM_EDATA, "nowhere", "no such folder");
    assert_fails(convert("p/images", "d", ""), PM_EDATA, "trainval.txt",
                 "SRC/annotations");
    put_file("p/annotations/trainval.txt", "Bengal_6 0 1 3\n");
    assert_fails(convert("p", "d", ""), PM_EDATA, "trainval.txt:1:", "second column");
    put_file("p/annotations/trainval.txt", "Bengal_6 6 1 3\nbengal 6 1 3\n");
    assert_fails(convert("p", "d", ""), PM_EDATA, "trainval.txt:2:", "CLASS_NUMBER");
    put_file("p/annotations/trainval.txt", "../x_6 6 1 3\n");
    assert_fails(convert("p", "d", ""), PM_EDATA, "trainval.txt:1:", "../x_6");
    put_file("p/annotations/trainval.txt", "Bengal_6 6 1 3\nbeagle_5 6 2 4\n");
    assert_fails(convert("p", "d", ""), PM_EDATA, "6", "id");
    /* A missing file of annotations is skipped; unannotated=error refuses it. */
    put_file("p/annotations/trainval.txt", "Bengal_6 6 1 3\nBengal_99 6 1 3\n");
    assert_int_equal(convert("p", "d", "validation=0"), PM_OK);
    assert_fails(convert("p", "e", "unannotated=error"), PM_EDATA, "Bengal_99.xml",
                 "does not exist");
    put_file("p/annotations/trainval.txt", "Bengal_6 6 1 3\n");
    struct pm_image8 im = { 2 * H, W, 1, (uint8_t *)other };
    uint8_t *png = NULL;
    size_t size = 0;
    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    assert_int_equal(pm_file_write(in_scratch("p/annotations/trimaps/Bengal_6.png"), png, size),
                     PM_OK);
    pm_free(png);
    assert_fails(convert("p", "f", "heads=false bad=error validation=0"), PM_EDATA,
                 "Bengal_6.png", "4 x 3 pixels, but its picture has 2 x 3");
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads),
        cmocka_unit_test(whole_animals),
        cmocka_unit_test(names_only),
        cmocka_unit_test(mistakes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
