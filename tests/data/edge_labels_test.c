/* Edge labels: equal to OpenCV's in tests/golden/edge_labels.json (edge_labels.py writes it) at
 * every pixel. Then cases that OpenCV does not cover: numbers of more than 8 bits, and widths
 * larger than the map. */
#include "preprocessing_common.h"

#include "data/edge_labels.h"

static uint16_t value_of(char c)
{
    return c == '.' ? 255 : c == '~' ? 254 : (uint16_t)(c >= 'a' ? c - 'a' + 10 : c - '0');
}

/* Builds a map from an object's rows of text. */
static struct pm_label map_of(const cJSON *o, const char *key)
{
    const cJSON *rows = cJSON_GetObjectItem(o, key), *row;
    struct pm_label l = { cJSON_GetArraySize(rows), (int)strlen(rows->child->valuestring), NULL };
    uint16_t *to = pm_malloc((size_t)l.height * (size_t)l.width * sizeof *to);

    l.values = to;
    cJSON_ArrayForEach(row, rows)
        for (int x = 0; x < l.width; x++)
            *to++ = value_of(row->valuestring[x]);
    return l;
}

static void expect(const struct pm_label *map, const struct pm_edge_options *o,
                   const struct pm_label *want, int number)
{
    struct pm_label got;

    pm_edge_labels(o, map, &got);
    assert_int_equal(got.height, map->height);
    assert_int_equal(got.width, map->width);
    for (int i = 0; i < map->height * map->width; i++) {
        const int is = got.values[i] == PM_EDGE_IGNORE ? 255 : got.values[i];

        if (is != want->values[i])
            fail_msg("case %d, width %d, %d classes, row %d, column %d: %d, OpenCV gives %d",
                     number, o->width, o->classes, i / map->width, i % map->width, is,
                     want->values[i]);
    }
    pm_label_free(&got);
}

static void golden(void **state)
{
    cJSON *all = golden_file("edge_labels.json");
    int cases = 0;

    (void)state;
    for (const cJSON *o = cJSON_GetObjectItem(all, "cases")->child; o; o = o->next, cases++) {
        struct pm_label map = map_of(o, "map"), edges = map_of(o, "edges"),
                        bands = map_of(o, "bands");
        struct pm_edge_options options = { 2, 1,
                                           cJSON_IsTrue(cJSON_GetObjectItem(o, "ignore")) ? 255
                                                                                          : -1 };
        expect(&map, &options, &edges, cases);
        options.classes = cJSON_GetObjectItem(o, "classes")->valueint;
        options.width = cJSON_GetObjectItem(o, "width")->valueint;
        expect(&map, &options, &bands, cases);
        pm_label_free(&map);
        pm_label_free(&edges);
        pm_label_free(&bands);
    }
    assert_int_equal(cases, 14);
    cJSON_Delete(all);
}

/* A step from 0 to 65000 is at the same place as one from 0 to 200. Under a square of the size
 * of the map everything is band. An ignored label of 16 bits. */
static void beyond(void **state)
{
    enum { H = 9, W = 12 };
    uint16_t low[H * W], high[H * W];
    const struct pm_label a = { H, W, low }, b = { H, W, high };
    struct pm_label x, y;

    (void)state;
    for (int i = 0; i < H * W; i++) {
        low[i] = i % W + i / W > 11 ? 200 : 0;
        high[i] = low[i] ? 65000 : 0;
    }
    pm_edge_labels(&(struct pm_edge_options){ 3, 2, -1 }, &a, &x);
    pm_edge_labels(&(struct pm_edge_options){ 3, 2, -1 }, &b, &y);
    assert_memory_equal(x.values, y.values, sizeof low);
    pm_label_free(&x);
    pm_label_free(&y);
    pm_edge_labels(&(struct pm_edge_options){ 2, 100, 65000 }, &b, &x);
    for (int i = 0; i < H * W; i++)
        assert_int_equal(x.values[i], high[i] ? PM_EDGE_IGNORE : 0);
    pm_label_free(&x);
}

/* ---- maps of many columns ---------------------------------------------------------------- */

enum { TALL = 37, LONG = 200, UNSEEN = 9 };

/* True when a pixel under the square at (y, x) is set. */
static bool is_near(const bool *mask, int w, int y, int x, int width)
{
    const int before = width / 2, after = width - 1 - before;

    for (int i = y > before ? y - before : 0; i < TALL && i <= y + after; i++)
        for (int k = x > before ? x - before : 0; k < w && k <= x + after; k++)
            if (mask[i * w + k])
                return true;
    return false;
}

static void check_bands(const struct pm_label *map, int width, int classes)
{
    static bool mask[TALL * LONG], next[TALL * LONG];
    uint16_t want[TALL * LONG];
    const int w = map->width, count = TALL * w;
    struct pm_label l;

    pm_edge_labels(&(struct pm_edge_options){ 2, 1, UNSEEN }, map, &l);
    for (int i = 0; i < count; i++) {
        mask[i] = l.values[i] == 0;
        want[i] = (uint16_t)(classes - 1);
    }
    pm_label_free(&l);
    for (int k = 0; k < classes - 1; k++) {
        for (int i = 0; i < count; i++) {
            next[i] = is_near(mask, w, i / w, i % w, width);
            want[i] = (uint16_t)(next[i] && want[i] == classes - 1 ? k : want[i]);
        }
        memcpy(mask, next, sizeof mask);
    }
    pm_edge_labels(&(struct pm_edge_options){ classes, width, UNSEEN }, map, &l);
    for (int i = 0; i < count; i++) {
        const int right = map->values[i] == UNSEEN ? PM_EDGE_IGNORE : want[i];

        if (l.values[i] != right)
            fail_msg("%d columns, width %d, %d classes, row %d, column %d: %d, not %d", w, width,
                     classes, i / w, i % w, l.values[i], right);
    }
    pm_label_free(&l);
}

/* By the definition: a square on every pixel. With more classes than bands fit, the last ones
 * are empty. */
static void many_columns(void **state)
{
    static const struct { int width, classes;
    } cases[] = {
        { 1, 3 },  { 2, 4 },  { 5, 3 },   { 20, 2 },  { 63, 2 },
        { 64, 3 }, { 65, 2 }, { 130, 2 }, { 13, 40 }, { 600, 3 },
    };
    static const int columns[] = { 63, 64, 65, 128, LONG };

    (void)state;
    for (size_t k = 0; k < PM_COUNT(columns); k++) {
        const int w = columns[k];
        uint16_t values[TALL * LONG] = { 0 };

        values[5 * w + 62] = 3;
        values[30 * w + w - 2] = 1;
        for (int x = w - 20; x < w - 15; x++)
            values[17 * w + x] = 2;
        for (int x = w / 2 - 4; x < w / 2 + 4; x++)
            values[10 * w + x] = UNSEEN;
        values[TALL * w - 1] = 4;
        for (size_t i = 0; i < PM_COUNT(cases); i++)
            check_bands(&(struct pm_label){ TALL, w, values }, cases[i].width, cases[i].classes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden), cmocka_unit_test(beyond), cmocka_unit_test(many_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
