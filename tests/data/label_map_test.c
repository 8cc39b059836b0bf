/* Label maps: protobuf's text form and JSON, each kind of mistake, and the map of a data folder. */
#include "convert_common.h"

#include <pumice/objects.h>

#include <cjson/cJSON.h>

static struct pm_arena *arena;
static struct pm_label_map map;

static int set_up(void **state)
{
    (void)state;
    arena = pm_arena_create();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pm_arena_destroy(&arena);
    return 0;
}

static void parsed(const char *text)
{
    if (pm_label_map_parse(arena, text, "m", &map) < 0)
        fail_msg("%s: %s", text, pm_error_text());
}

static void assert_item(int i, int id, const char *name, const char *display_name)
{
    assert_int_equal(map.item[i].id, id);
    assert_string_equal(map.item[i].name, name);
    assert_int_equal(map.item[i].display_name != NULL, display_name != NULL);
    if (display_name)
        assert_string_equal(map.item[i].display_name, display_name);
}

/* ---- reading -------------------------------------------------------------------------------- */

static void text_form(void **state)
{
    (void)state;
    parsed("\xef\xbb\xbf" "item { name: 'cat' id: 1 }"); /* a byte order mark */
    assert_item(0, 1, "cat", NULL);
    parsed("\xef\xbb\xbf" "[{\"name\": \"dog\", \"id\": 1}]");
    assert_item(0, 1, "dog", NULL);
    parsed("# classes\n"
           "item { name: 'cat' id: 1 display_name: \"a \\\"cat\\\"\" }\n"
           "item:<id:0x5a,name:\"d\" 'o' \"g\\303\\xa9\";>\n"
           "item{frequency: FREQUENT instance_count: -7 ancestor_ids: [1, 2] ancestor_ids: 3\n"
           "  keypoints { id: 1 label: 'eye' } keypoints: { label: 'nose' id: 0 }\n"
           "  display_name: 'background' id: 0 name: 'none' } # end");
    assert_int_equal(map.count, 3);
    assert_item(0, 1, "cat", "a \"cat\"");
    assert_item(1, 90, "dog\303\251", NULL);
    assert_item(2, 0, "none", "background");
    assert_int_equal(map.item[2].points_count, 2);
    assert_string_equal(map.item[2].points[0], "nose");
    assert_string_equal(map.item[2].points[1], "eye");
}

static void json_form(void **state)
{
    (void)state;
    parsed(" [{\"id\": 3, \"name\": \"a\", \"display_name\": \"A\"}, {\"name\": \"b\", \"id\": 1, "
           "\"keypoints\": [{\"id\": 1, \"label\": \"k\"}], \"frequency\": 0}]");
    assert_int_equal(map.count, 2);
    assert_item(0, 3, "a", "A");
    assert_item(1, 1, "b", NULL);
    assert_int_equal(map.item[1].points_count, 2);
    assert_null(map.item[1].points[0]);
    parsed("{\"item\": [{\"id\": 7, \"name\": \"x\"}]}");
    assert_item(0, 7, "x", NULL);
}

static void find(void **state)
{
    (void)state;
    parsed("item { name: '/m/1' id: 4 display_name: 'cat' } item { name: 'cat' id: 2 }"
           "item { name: 'dog' id: 9 }");
    assert_int_equal(pm_label_map_find(&map, "cat"), 4); /* the higher of two ids */
    assert_int_equal(pm_label_map_find(&map, "/m/1"), 4);
    assert_int_equal(pm_label_map_find(&map, "dog"), 9);
    assert_int_equal(pm_label_map_find(&map, "Dog"), -1);
    assert_string_equal(pm_label_map_nearest(&map, "Dog"), "dog");
    assert_null(pm_label_map_item(&map, 3));
    assert_string_equal(pm_label_map_item(&map, 9)->name, "dog");
}

/* The printed form reads as the same map. */
static void printed(void **state)
{
    struct pm_str text = { 0 };

    (void)state;
    parsed("item { name: \"a\\\\ 'q' \\\"b\\\" \\303\\251\" id: 90 display_name: 'x' }\n"
           "item { name: 'b' id: 7 keypoints { id: 2 label: 'knee' } }");
    pm_label_map_print(&map, &text);
    parsed(text.text);
    assert_int_equal(map.count, 2);
    assert_item(0, 90, "a\\ 'q' \"b\" \303\251", "x");
    assert_item(1, 7, "b", NULL);
    assert_int_equal(map.item[1].points_count, 3);
    assert_string_equal(map.item[1].points[2], "knee");
    pm_str_free(&text);
}

/* ---- errors --------------------------------------------------------------------------------- */

static void refused(void **state)
{
    static const struct {
        const char *text, *first, *second;
    } bad[] = {
        { "", "m: has 0 items", "1..1048576" },
        { "item { id: 1 }", "m:1: the item has no name", "add name" },
        { "item { name: '' id: 1 }", "m:1: the item has no name", "add name" },
        { "\n\nitem { name: 'a' }", "m:3: \"a\" has no id", "from 1" },
        { "item { name: 'a' id: -4 }", "m:1: \"a\" has the id -4", "1..1048575" },
        { "item { name: 'a' id: 1048576 }", "has the id 1048576", "1..1048575" },
        { "item { name: 'a' id: 0 }", "\"a\" has the id 0", "background" },
        { "item{name:'a' id:2}\nitem{name:'b' id:2}", "m:2: \"b\" has the id 2, which \"a\"",
          "(line 1) has, too" },
        { "item{name:'a' id:2}\nitem{name:'a' id:3}", "m:2: a second item has the name \"a\"",
          "line 1" },
        { "item{name:'a\\nb' id:2}", "a name is one line", "rename it" },
        { "item{name:'a' id:2 display_name: 'x\\033'}", "a name is one line", "rename it" },
        { "item{name:'a' id:2 id:3}", "m:1: id appears twice", "remove one" },
        { "item{name:'a' name:'b' id:3}", "m:1: name appears twice", "remove one" },
        { "item{nme:'a' id:3}", "m:1: an item of a label map has no field nme",
          "did you mean name?" },
        { "model { ssd { } }", "m:1: expected item, found: model", "is this a label map?" },
        { "item{name:'a\nb' id:3}", "m:1: expected the quote", "found: \"\"" },
        { "item{name:'a\\q' id:3}", "a valid escape", "\\q" },
        { "item{name:'a' id:1e3}", "a whole number", "1e3" },
        { "item{name:'a' id:99999999999999999999}", "at most 64 bits", "m:1" },
        { "item{name:'a' id:3", "the name of a field", "the end of the file" },
        { "item{name: 3 id:3}", "a text in quotes", "found: \"3\"" },
        { "item 'a'", "expected '{'", "m:1" },
        { "item{name:'a' id:3 keypoints{id:-1 label:'x'}}", "the keypoint has the id -1",
          "0..999" },
        { "item{name:'a' id:3 keypoints{id:1} keypoints{id:1}}", "two keypoints have the id 1",
          "unique" },
        { "item{name:'a' id:3 keypoints{x:1}}", "a keypoint has no field x", "id and label" },
        { "item{name:'a' id:3 frequency: }", "expected a value", "found: \"}\"" },
        { "[]", "m: has 0 items", "1..1048576" },
        { "{}", "m: a label map is a list", "id and name" },
        { "[3]", "m: item 1: no object", "id and name" },
        { "[{\"id\": 1, \"name\": \"a\"}, {\"id\": 1.5, \"name\": \"b\"}]",
          "m: item 2: id is not a whole number", "" },
        { "[{\"id\": 1, \"name\": \"a\"}, {\"id\": 1, \"name\": \"b\"}]",
          "m: item 2: \"b\" has the id 1, which \"a\" (item 1)", "unique" },
        { "[{\"id\": 1, \"name\": 5}]", "m: item 1: name is not a text", "" },
        { "[{\"id\": 1", "m:1", "" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        if (pm_label_map_parse(arena, bad[i].text, "m", &map) != PM_EDATA)
            fail_msg("not refused: %s (%s)", bad[i].text, pm_error_text());
        assert_fails(PM_EDATA, PM_EDATA, bad[i].first, bad[i].second);
    }
}

/* A million nested levels need little stack and time. */
static void nested(void **state)
{
    enum { DEEP = 1000000 };
    struct pm_str text = { 0 };

    (void)state;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < DEEP; i++)
            pm_str_add(&text, "%s", k ? "[" : "item { ");
        assert_int_equal(pm_label_map_parse(arena, text.text, "m", &map), PM_EDATA);
        pm_str_free(&text);
    }
}

/* ---- data folders --------------------------------------------------------------------------- */

static int nothing(void *ctx, size_t i, struct pm_example_builder *b)
{
    (void)ctx, (void)i;
    pm_example_add_ints(b, "image/height", (const int64_t[]){ 1 }, 1);
    return 1;
}

static void folder(void **state)
{
    struct pm_making *m = NULL;

    (void)state;
    scratch_make();
    parsed("item { name: 'cat' id: 90 display_name: 'x' } item { name: 'dog' id: 7 }");
    assert_int_equal(pm_making_create(in_scratch("d"), "d", false, &m), PM_OK);
    pm_making_box_labels(m, &map);
    assert_int_equal(pm_making_split(m, "train", 1, NULL, nothing, NULL), PM_OK);
    assert_int_equal(pm_making_finish(m), PM_OK);
    pm_making_destroy(&m);
    map = (struct pm_label_map){ NULL, 0 };
    assert_int_equal(pm_label_map_of_folder(arena, in_scratch("d"), &map), PM_OK);
    assert_int_equal(map.count, 2);
    assert_item(0, 90, "cat", "x");
    assert_item(1, 7, "dog", NULL);
    assert_int_equal(pm_label_map_read(arena, in_scratch("d/label_map.pbtxt"), &map), PM_OK);
    assert_item(1, 7, "dog", NULL);
    put_text("d/dataset.json", "{\"box_labels\": [{\"id\": 1}]}");
    assert_fails(pm_label_map_of_folder(arena, in_scratch("d"), &map), PM_EDATA,
                 "d/dataset.json: item 1: ", "no name");
    put_text("d/dataset.json", "{}");
    assert_int_equal(pm_label_map_of_folder(arena, in_scratch("d"), &map), PM_OK);
    assert_item(0, 90, "cat", "x");
    remove(in_scratch("d/label_map.pbtxt"));
    assert_fails(pm_label_map_of_folder(arena, in_scratch("d"), &map), PM_EDATA,
                 "has no label map", "label_map.pbtxt");
    put_text("d/labels.txt", "0:cat\n1:dog\n");
    assert_int_equal(pm_label_map_of_folder(arena, in_scratch("d"), &map), PM_OK);
    assert_item(0, 1, "cat", NULL);
    put_text("d/labels.txt", "0:background\n1:dog\n");
    assert_int_equal(pm_label_map_of_folder(arena, in_scratch("d"), &map), PM_OK);
    assert_item(1, 1, "dog", NULL);
    scratch_remove();
}

/* ---- TensorFlow's files --------------------------------------------------------------------- */

static void real(void **state)
{
    static const struct {
        const char *file;
        int count, last;
        const char *name, *display_name;
    } files[] = {
        { "face_label_map.pbtxt", 1, 1, "face", "face" },
        { "kitti_label_map.pbtxt", 2, 2, "pedestrian", NULL },
        { "mscoco_label_map.pbtxt", 80, 90, "/m/012xff", "toothbrush" },
        { "pascal_label_map.pbtxt", 20, 20, "tvmonitor", NULL },
        { "pet_label_map.pbtxt", 37, 37, "yorkshire_terrier", NULL },
    };
    const char *at = shared_data("pipeline-configs/label_maps");
    char path[1100];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", at, files[i].file);
        if (pm_label_map_read(arena, path, &map) < 0)
            fail_msg("%s", pm_error_text());
        assert_int_equal(map.count, files[i].count);
        assert_item(map.count - 1, files[i].last, files[i].name, files[i].display_name);
    }
}

/* A checkpoint stores the classes of boxes with the facts about its data. */
static void stored(void **state)
{
    struct pm_dataset_info info = { .ignore_label = -1, .box_labels = &map }, read;
    struct cJSON *object;

    (void)state;
    parsed("item { name: 'cat' id: 1 } item { name: \"a'b\" id: 9 display_name: 'x' }");
    object = pm_dataset_info_dump(&info);
    assert_int_equal(pm_dataset_info_parse(arena, object, "s", &read), PM_OK);
    map = *read.box_labels;
    assert_int_equal(map.count, 2);
    assert_item(0, 1, "cat", NULL);
    assert_item(1, 9, "a'b", "x");
    cJSON_ReplaceItemInObject(object, "box_labels", cJSON_Parse("[{\"id\":-1,\"name\":\"x\"}]"));
    assert_int_equal(pm_dataset_info_parse(arena, object, "s", &read), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "s: data.box_labels"));
    cJSON_Delete(object);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(text_form), TEST(json_form), TEST(find),   TEST(printed),
        TEST(refused),   TEST(nested),    TEST(folder), TEST(real),
        TEST(stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
