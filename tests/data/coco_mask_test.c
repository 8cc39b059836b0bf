/* Masks of polygons, pixels and runs equal pycocotools' in tests/golden/coco_masks.json
 * (coco_masks.py writes it): 10,000 drawn masks, and those of COCO's pictures where they are
 * installed. Then texts and sizes that are refused. */
#include "preprocessing_common.h"

#include "data/coco_mask.h"

#include <math.h>
#include <time.h>

/* ---- the numbers of coco_masks.py ----------------------------------------------------------- */

struct numbers {
    uint64_t n;
};

static int draw(struct numbers *r, int below)
{
    r->n = (r->n * 1103515245 + 12345) % ((uint64_t)1 << 31);
    return (int)((r->n >> 16) % (uint64_t)below);
}

static int32_t scaled(double v)
{
    int32_t out = 0;
    assert_true(pm_coco_scaled(v, &out));
    return out;
}

static struct pm_runs draw_polygon(struct numbers *r, int height, int width)
{
    const bool whole = draw(r, 4) == 0;
    const int corners = 3 + draw(r, 12);
    struct pm_runs out;
    int32_t xy[28];
    double at[2] = { 0, 0 };

    for (int k = 0; k < corners; k++) {
        double now[2];
        for (int d = 0; d < 2; d++) {
            const int side = d ? height : width, coarse = draw(r, side * 7), fine = draw(r, 20);
            now[d] = (coarse * 20 + fine - 20 * side) / 100.0;
            now[d] = whole ? (double)(int)now[d] : now[d];
        }
        if (!(draw(r, 8) == 0 && k))
            memcpy(at, now, sizeof at);
        xy[2 * k] = scaled(at[0]), xy[2 * k + 1] = scaled(at[1]);
    }
    assert_int_equal(pm_runs_polygon(xy, (size_t)corners, height, width, "p", &out), PM_OK);
    return out;
}

static struct pm_runs draw_pixels(struct numbers *r, int height, int width)
{
    uint8_t *pixels = pm_malloc((size_t)height * (size_t)width);
    const int often = 1 + draw(r, 8);
    struct pm_runs out;

    for (int i = 0; i < height * width; i++)
        pixels[i] = draw(r, 8) < often;
    pm_runs_encode(pixels, height, width, &out);
    pm_free(pixels);
    return out;
}

static struct pm_runs draw_runs(struct numbers *r, int height, int width)
{
    uint32_t *runs = NULL, left = (uint32_t)(height * width);
    size_t count = 0, capacity = 0;
    struct pm_runs out;

    while (left) {
        const uint32_t n = (uint32_t)draw(r, 1 + height * 2);
        PM_GROW(runs, count, capacity);
        runs[count] = n < left ? n : left;
        left -= runs[count++];
    }
    assert_int_equal(pm_runs_counts(runs, count, height, width, "c", &out), PM_OK);
    pm_free(runs);
    return out;
}

static struct pm_runs draw_mask(struct numbers *r, int kind, int height, int width)
{
    if (kind == 2)
        return draw_pixels(r, height, width);
    if (kind == 3)
        return draw_runs(r, height, width);
    const int parts = 1 + kind * draw(r, 3);
    struct pm_runs all = draw_polygon(r, height, width);
    for (int k = 1; k < parts; k++) {
        struct pm_runs part = draw_polygon(r, height, width);
        pm_runs_unite(&all, &part);
        pm_runs_free(&part);
    }
    return all;
}

static void draw_size(struct numbers *r, int index, int *height, int *width)
{
    const int most = index % 100 == 99 ? 700 : 64;

    *height = 1 + draw(r, most);
    *width = 1 + draw(r, most);
}

static struct pm_runs drawn(int index)
{
    struct numbers r = { (uint64_t)index + 1 };
    int height, width;

    draw_size(&r, index, &height, &width);
    return draw_mask(&r, index % 4, height, width);
}

/* ---- sums ----------------------------------------------------------------------------------- */

static void print_line(const struct pm_runs *m, struct pm_str *line)
{
    uint32_t box[4];

    pm_runs_print(m, line);
    pm_runs_box(m, box);
    pm_str_add(line, " %llu %u %u %u %u", (unsigned long long)pm_runs_area(m), box[0], box[1],
               box[2], box[3]);
}

/* Adds a mask to a sum. Its text must give the same runs. */
static void add(struct pm_sha256 *sum, const struct pm_runs *m)
{
    const size_t pixels = (size_t)m->height * (size_t)m->width;
    uint8_t *out = pm_malloc(pixels);
    struct pm_str line = { 0 };
    struct pm_runs again;

    print_line(m, &line);
    pm_sha256_add(sum, line.text, line.length);
    pm_sha256_add(sum, "\n", 1);
    pm_runs_decode(m, out);
    pm_sha256_add(sum, out, pixels);
    *strchr(line.text, ' ') = '\0';
    assert_int_equal(pm_runs_text(line.text, m->height, m->width, "t", &again), PM_OK);
    assert_int_equal(again.count, m->count);
    assert_memory_equal(again.run, m->run, m->count * sizeof *m->run);
    pm_runs_free(&again);
    pm_str_free(&line);
    pm_free(out);
}

/* Ends the sum of `count` items before item `end`, and compares its first digits. */
static void check_sum(struct pm_sha256 *sum, const cJSON *want, const char *what, int count,
                      int end)
{
    char hex[65];

    pm_sha256_end(sum, hex);
    hex[16] = '\0';
    if (strcmp(hex, want->valuestring))
        fail_msg("%s of %d..%d differs from pycocotools'", what, end - count, end - 1);
}

static void random_masks(void **state)
{
    cJSON *all = golden_file("coco_masks.json");
    const cJSON *listed = cJSON_GetObjectItem(all, "listed"),
                *sums = cJSON_GetObjectItem(all, "sums");
    const int per = cJSON_GetObjectItem(all, "per_sum")->valueint;
    int index = 0;

    (void)state;
    for (const cJSON *s = sums->child; s; s = s->next) {
        struct pm_sha256 sum;

        pm_sha256_start(&sum);
        for (int k = 0; k < per; k++, index++) {
            struct pm_runs m = drawn(index);
            struct pm_str line = { 0 };

            print_line(&m, &line);
            if (index < cJSON_GetArraySize(listed))
                assert_string_equal(line.text, cJSON_GetArrayItem(listed, index)->valuestring);
            add(&sum, &m);
            pm_str_free(&line);
            pm_runs_free(&m);
        }
        check_sum(&sum, s, "a mask", per, index);
    }
    assert_int_equal(index, 10000);
    cJSON_Delete(all);
}

/* Overlaps of pairs, as an object and as a crowd. */
static void random_overlaps(void **state)
{
    cJSON *all = golden_file("coco_masks.json");
    const cJSON *sums = cJSON_GetObjectItem(all, "overlaps");
    const int per = cJSON_GetObjectItem(all, "per_sum")->valueint;
    int index = 0, above = 0;

    (void)state;
    for (const cJSON *s = sums->child; s; s = s->next) {
        struct pm_sha256 sum;

        pm_sha256_start(&sum);
        for (int k = 0; k < per; k++, index++) {
            struct numbers r = { (uint64_t)index + 100001 };
            char line[80];
            int height, width;

            draw_size(&r, index, &height, &width);
            struct pm_runs a = draw_mask(&r, index % 4, height, width);
            struct pm_runs b = draw_mask(&r, index / 4 % 4, height, width);
            const double overlap = pm_runs_overlap(&a, &b, false);
            snprintf(line, sizeof line, "%.17g %.17g\n", overlap, pm_runs_overlap(&a, &b, true));
            pm_sha256_add(&sum, line, strlen(line));
            above += overlap > 0.1;
            pm_runs_free(&a);
            pm_runs_free(&b);
        }
        check_sum(&sum, s, "an overlap", per, index);
    }
    assert_int_equal(index, 4000);
    assert_true(above > 1000);
    cJSON_Delete(all);
}

/* ---- COCO's annotations --------------------------------------------------------------------- */

static struct pm_runs of_polygons(const cJSON *list, int height, int width)
{
    struct pm_runs all = { 0 };

    for (const cJSON *polygon = list->child; polygon; polygon = polygon->next) {
        const int numbers = cJSON_GetArraySize(polygon);
        int32_t *xy = pm_malloc((size_t)numbers * sizeof *xy);
        struct pm_runs part;
        int k = 0;

        for (const cJSON *v = polygon->child; v; v = v->next)
            xy[k++] = scaled(v->valuedouble);
        assert_int_equal(pm_runs_polygon(xy, (size_t)numbers / 2, height, width, "p", &part),
                         PM_OK);
        pm_free(xy);
        if (!all.run) {
            all = part;
            continue;
        }
        pm_runs_unite(&all, &part);
        pm_runs_free(&part);
    }
    return all;
}

static struct pm_runs of_counts(const cJSON *counts, int height, int width)
{
    uint32_t *runs = pm_malloc(((size_t)cJSON_GetArraySize(counts) + 1) * sizeof *runs);
    struct pm_runs out;
    size_t n = 0;

    for (const cJSON *v = counts->child; v; v = v->next)
        runs[n++] = (uint32_t)v->valuedouble;
    assert_int_equal(pm_runs_counts(runs, n, height, width, "c", &out), PM_OK);
    pm_free(runs);
    return out;
}

static const cJSON *by_id(const cJSON *list, double id)
{
    for (const cJSON *v = list->child; v; v = v->next)
        if (cJSON_GetObjectItem(v, "id")->valuedouble == id)
            return v;
    fail_msg("no image %g", id);
    return NULL;
}

static void compare_file(const cJSON *want)
{
    struct pm_sha256 sum;
    char name[256], hex[65], *text = NULL;
    cJSON *o = NULL;
    int count = 0;

    snprintf(name, sizeof name, "coco-mini/annotations/%s",
             cJSON_GetObjectItem(want, "file")->valuestring);
    assert_int_equal(pm_file_read(shared_data(name), &text, NULL), PM_OK);
    assert_int_equal(pm_json_parse(name, text, &o), PM_OK);
    pm_sha256_start(&sum);
    for (const cJSON *a = cJSON_GetObjectItem(o, "annotations")->child; a; a = a->next, count++) {
        const cJSON *s = cJSON_GetObjectItem(a, "segmentation"),
                    *im = by_id(cJSON_GetObjectItem(o, "images"),
                                cJSON_GetObjectItem(a, "image_id")->valuedouble);
        const int height = cJSON_GetObjectItem(im, "height")->valueint;
        const int width = cJSON_GetObjectItem(im, "width")->valueint;
        struct pm_runs m = cJSON_IsArray(s)
                               ? of_polygons(s, height, width)
                               : of_counts(cJSON_GetObjectItem(s, "counts"), height, width);
        add(&sum, &m);
        pm_runs_free(&m);
    }
    pm_sha256_end(&sum, hex);
    assert_int_equal(count, cJSON_GetObjectItem(want, "count")->valueint);
    assert_string_equal(hex, cJSON_GetObjectItem(want, "sum")->valuestring);
    cJSON_Delete(o);
    pm_free(text);
}

static void real_masks(void **state)
{
    cJSON *all = golden_file("coco_masks.json");
    const cJSON *real = cJSON_GetObjectItem(all, "real");

    (void)state;
    shared_data("coco-mini");
    for (const cJSON *want = real->child; want; want = want->next)
        compare_file(want);
    cJSON_Delete(all);
}

/* ---- large masks ---------------------------------------------------------------------------- */

/* Masks higher and wider than a tile of the decoder, empty, full, and with runs over many columns:
 * each pixel is where its number by columns says. */
static void large_masks(void **state)
{
    enum { HEIGHT = 131, WIDTH = 200, PIXELS = HEIGHT * WIDTH };
    static const uint32_t runs[][4] = {
        { PIXELS, 0, 0, 0 },
        { 0, PIXELS, 0, 0 },
        { 5, 64 * HEIGHT, 7, PIXELS - 64 * HEIGHT - 12 },
        { 63 * HEIGHT + 130, 2, 100 * HEIGHT, PIXELS - 163 * HEIGHT - 132 },
        { 64 * HEIGHT, 64 * HEIGHT, 72 * HEIGHT, 0 },
    };
    uint8_t *pixels = pm_malloc(PIXELS);

    (void)state;
    for (size_t i = 0; i < PM_COUNT(runs); i++) {
        struct pm_runs m;
        uint32_t at = 0;

        assert_int_equal(pm_runs_counts(runs[i], 4, HEIGHT, WIDTH, "c", &m), PM_OK);
        memset(pixels, 7, PIXELS);
        pm_runs_decode(&m, pixels);
        for (int k = 0; k < 4; k++)
            for (uint32_t end = at + runs[i][k]; at < end; at++)
                assert_int_equal(pixels[at % HEIGHT * WIDTH + at / HEIGHT], k % 2);
        pm_runs_free(&m);
    }
    pm_free(pixels);
}

/* 500 objects of 4,000 x 6,000 pixels, two of them as large as the picture, are read from their
 * texts and decoded in 30 ms each at most. */
static void many_large_masks(void **state)
{
    enum { HEIGHT = 4000, WIDTH = 6000, OBJECTS = 500, CORNERS = 64 };
    struct pm_str texts[OBJECTS] = { { 0 } };
    uint8_t *pixels = pm_malloc((size_t)HEIGHT * WIDTH);
    struct numbers r = { 1 };

    (void)state;
    for (int i = 0; i < OBJECTS; i++) {
        const double radius = i < 2 ? 5000 : 40 + draw(&r, 400);
        const double y = draw(&r, HEIGHT), x = draw(&r, WIDTH);
        struct pm_runs m;
        int32_t xy[2 * CORNERS];

        for (int k = 0; k < CORNERS; k++) {
            xy[2 * k] = scaled(x + radius * cos(k * 6.283 / CORNERS));
            xy[2 * k + 1] = scaled(y + radius * sin(k * 6.283 / CORNERS));
        }
        assert_int_equal(pm_runs_polygon(xy, CORNERS, HEIGHT, WIDTH, "c", &m), PM_OK);
        pm_runs_print(&m, &texts[i]);
        pm_runs_free(&m);
    }
    const clock_t begin = clock();
    for (int i = 0; i < OBJECTS; i++) {
        struct pm_runs m;

        assert_int_equal(pm_runs_text(texts[i].text, HEIGHT, WIDTH, "t", &m), PM_OK);
        pm_runs_decode(&m, pixels);
        pm_runs_free(&m);
        pm_str_free(&texts[i]);
    }
    const double each = 1000.0 * (double)(clock() - begin) / CLOCKS_PER_SEC / OBJECTS;
    print_message("a mask of 24 megapixels: %.2f ms\n", each);
    assert_true(each < 30);
    pm_free(pixels);
}

/* ---- errors --------------------------------------------------------------------------------- */

/* A mask in a larger picture has the same pixels at another place. */
static void moved_masks(void **state)
{
    enum { HEIGHT = 5, WIDTH = 7, MORE = 3 };
    static const char *const pictures[] = {
        "...................................", "###################################",
        "#......#......#......#......#......", "......#.....#.....#.....#.....#....",
        "..###....#.#...###.#.....#.....####",
    };

    (void)state;
    for (size_t k = 0; k < PM_COUNT(pictures); k++)
        for (int y = 0; y <= MORE; y++)
            for (int x = 0; x <= MORE; x++) {
                enum { H = HEIGHT + MORE, W = WIDTH + MORE };
                uint8_t in[HEIGHT * WIDTH], want[H * W] = { 0 }, got[H * W];
                struct pm_runs small, large, own;

                for (int i = 0; i < HEIGHT * WIDTH; i++) {
                    in[i] = pictures[k][i] == '#';
                    want[(y + i / WIDTH) * W + x + i % WIDTH] = in[i];
                }
                pm_runs_encode(in, HEIGHT, WIDTH, &small);
                pm_runs_move(&small, y, x, H, W, &large);
                pm_runs_decode(&large, got);
                assert_memory_equal(got, want, sizeof want);
                pm_runs_encode(want, H, W, &own); /* no run is cut in two */
                assert_true(large.count >= own.count - 1 && large.count <= own.count);
                assert_memory_equal(large.run, own.run, large.count * sizeof *own.run);
                pm_runs_free(&small);
                pm_runs_free(&large);
                pm_runs_free(&own);
            }
}

static void bad_texts(void **state)
{
    static const struct {
        const char *text, *first, *second;
    } bad[] = {
        { "", "add up to 0 pixels", "2 x 3 has 6" },
        { "5", "add up to 5 pixels", "belongs to another picture" },
        { "61", "add up to 7 pixels", "2 x 3" },
        { "1 1", "unknown character at character 2", "damaged" },
        { "1\x7f", "unknown character at character 2", "damaged" },
        { "P", "ends within a number at character 2", "damaged" },
        { "N", "run 1 of the mask has -2 pixels", "0..268435456" },
        { "ooooooooooooo", "has a number that is too large at character 8", "damaged" },
        { "oooooo0", "run 1 of the mask has 1073741823 pixels", "0..268435456" },
    };
    struct pm_runs m;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        if (pm_runs_text(bad[i].text, 2, 3, "a: mask 7", &m) != PM_EDATA)
            fail_msg("not refused: %s", bad[i].text);
        assert_fails(PM_EDATA, PM_EDATA, "a: mask 7", bad[i].first, bad[i].second);
        pm_runs_free(&m);
    }
}

static void bad_sizes(void **state)
{
    static const int32_t far[] = { -(1 << 24), 0, 1 << 24, 0, -(1 << 24), 1, 1 << 24, 5 };
    const uint32_t runs[] = { UINT32_MAX, 7 };
    struct pm_runs m;
    int32_t out;

    (void)state;
    assert_fails(pm_runs_text("0", 0, 3, "a", &m), PM_EDATA, "a: a mask of 0 x 3 pixels");
    assert_fails(pm_runs_polygon(far, 3, 1 << 20, 1 << 20, "a", &m), PM_EDATA, "1048576 x 1048576");
    assert_fails(pm_runs_polygon(far, 4, 4, 4, "a", &m), PM_EDATA, "a: the polygon's outline is",
                 "67108864 are allowed");
    assert_fails(pm_runs_counts(runs, 2, 2, 3, "a", &m), PM_EDATA, "add up to 4294967302 pixels");
    assert_false(pm_coco_scaled(NAN, &out) || pm_coco_scaled(INFINITY, &out) ||
                 pm_coco_scaled(-4e6, &out) || pm_coco_scaled(1e300, &out));
}

/* Outlines far outside the picture, of one line or of one point are empty or clipped. */
static void odd_polygons(void **state)
{
    static const int32_t outside[] = { 500, 500, 600, 500, 600, 600 }, point[] = { 7, 7 };
    static const int32_t around[] = { -100, -100, 900, -100, 900, 900, -100, 900 };
    uint8_t pixels[12];
    uint32_t box[4];
    struct pm_runs m;

    (void)state;
    assert_int_equal(pm_runs_polygon(outside, 3, 3, 4, "p", &m), PM_OK);
    assert_true(pm_runs_area(&m) == 0 && m.count == 1);
    pm_runs_box(&m, box);
    assert_true(box[0] == 0 && box[1] == 0 && box[2] == 0 && box[3] == 0);
    pm_runs_free(&m);
    assert_int_equal(pm_runs_polygon(point, 1, 3, 4, "p", &m), PM_OK);
    assert_int_equal(pm_runs_area(&m), 0);
    pm_runs_free(&m);
    assert_int_equal(pm_runs_polygon(around, 4, 3, 4, "p", &m), PM_OK);
    assert_int_equal(pm_runs_area(&m), 12);
    pm_runs_decode(&m, pixels);
    for (int i = 0; i < 12; i++)
        assert_int_equal(pixels[i], 1);
    pm_runs_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_masks), cmocka_unit_test(random_overlaps),
        cmocka_unit_test(real_masks),   cmocka_unit_test(bad_texts),
        cmocka_unit_test(bad_sizes),    cmocka_unit_test(odd_polygons),
        cmocka_unit_test(moved_masks),  cmocka_unit_test(large_masks),
        cmocka_unit_test(many_large_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
