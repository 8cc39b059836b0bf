/* DeepLab's preprocessing: pictures and maps compared with TensorFlow's own results in
 * tests/golden/deeplab_preprocessing.json (deeplab_preprocessing.py writes it), pictures and
 * maps together, and mistakes. */
#include "preprocessing_common.h"

static double number(const cJSON *o, const char *key, double otherwise)
{
    const cJSON *v = cJSON_GetObjectItem(o, key);
    return v ? v->valuedouble : otherwise;
}

static int item(const cJSON *o, const char *key, int i)
{
    return cJSON_GetArrayItem(cJSON_GetObjectItem(o, key), i)->valueint;
}

static struct pm_image8 patterned(int height, int width, int channels)
{
    struct pm_image8 im = { height, width, channels,
                            pm_malloc((size_t)height * (size_t)width * (size_t)channels) };
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                im.pixels[(y * width + x) * channels + c] =
                    (uint8_t)(31 * y * y + 17 * x * y + 7 * x + 53 * c);
    return im;
}

static struct pm_label labelled(int height, int width)
{
    struct pm_label l = { height, width, pm_malloc((size_t)height * (size_t)width * 2) };
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            l.values[y * width + x] = (uint16_t)((5 * y + 3 * x + x * y) % 23);
    return l;
}

/* The options of an object of the golden. */
static struct config golden_config(const cJSON *o)
{
    const cJSON *name = cJSON_GetObjectItem(o, "name");
    struct config c = { pm_preprocessing_find(name ? name->valuestring : "deeplab"),
                        pm_arena_create(), NULL };
    c.cfg = pm_arena_alloc(c.arena, c.row->cfg_size);
    assert_int_equal(pm_opts_parse(c.row->opts, cJSON_GetObjectItem(o, "options"), NULL, c.cfg,
                                   c.arena, "golden"), PM_OK);
    return c;
}

static void golden_case(const cJSON *o)
{
    const int h = item(o, "input", 0), w = item(o, "input", 1);
    struct config c = golden_config(o);
    struct pm_image8 im = patterned(item(o, "picture", 0), item(o, "picture", 1), 3);
    struct pm_label label = labelled(im.height, im.width);
    const cJSON *draws = cJSON_GetObjectItem(o, "draws");
    const struct pm_draws d = { .side = number(draws, "side", 0),
                                .crop_y = number(draws, "crop_y", 0),
                                .crop_x = number(draws, "crop_x", 0),
                                .flip = cJSON_IsTrue(cJSON_GetObjectItem(draws, "flip")) };
    int32_t *map = pm_malloc((size_t)h * (size_t)w * sizeof *map);
    float *out = run_as(&c, &im, draws != NULL, &d, h, w, 3);
    const cJSON *v = cJSON_GetObjectItem(o, "image")->child;
    const double top = strcmp(c.row->name, "deeplab") ? 255 : 2;
    int i = 0;

    for (; v; v = v->next, i++)
        if (!(fabs(out[i] - v->valuedouble) <= 2 * OPS * ulp * top))
            fail_msg("%s, value %d: %.9g, TensorFlow gives %.9g", cJSON_PrintUnformatted(draws), i,
                     (double)out[i], v->valuedouble);
    assert_int_equal(i, h * w * 3);
    for (i = 0; i < h * w; i++)
        map[i] = -7;
    assert_int_equal(place_map(c.row, c.cfg, &label, &im, draws != NULL, &d, h, w, 255, map, "x"),
                     PM_OK);
    for (v = cJSON_GetObjectItem(o, "label")->child, i = 0; v; v = v->next, i++)
        assert_int_equal(map[i], v->valueint);
    assert_int_equal(i, h * w);
    pm_free(map);
    pm_free(out);
    pm_free(label.values);
    pm_image_free(&im);
    pm_arena_destroy(&c.arena);
}

static void golden(void **state)
{
    cJSON *all = golden_file("deeplab_preprocessing.json");
    int cases = 0;

    (void)state;
    for (const cJSON *o = cJSON_GetObjectItem(all, "cases")->child; o; o = o->next, cases++)
        golden_case(o);
    assert_int_equal(cases, 19);
    cJSON_Delete(all);
}

/* Sizes after min_resize, max_resize and resize_factor; the example of 375 x 500 by hand; the
 * scales. */
static void sizes(void **state)
{
    cJSON *all = golden_file("deeplab_preprocessing.json");
    struct pm_framing p;
    struct pm_placed all_of;
    int count = 0;

    (void)state;
    for (const cJSON *o = cJSON_GetObjectItem(all, "sizes")->child; o; o = o->next) {
        struct config c = golden_config(o);
        for (const cJSON *s = cJSON_GetObjectItem(o, "pictures")->child; s; s = s->next, count++) {
            int n[4];
            for (int i = 0; i < 4; i++)
                n[i] = cJSON_GetArrayItem(s, i)->valueint;
            assert_int_equal(
                pm_preprocessing_frame(c.row, c.cfg, n[0], n[1], 20000, 20000, false, "x", &p),
                PM_OK);
            if (p.height != n[2] || p.width != n[3])
                fail_msg("%d x %d: %d x %d, TensorFlow gives %d x %d", n[0], n[1], p.height,
                         p.width, n[2], n[3]);
            assert_int_equal(
                place_size(c.row, c.cfg, n[0], n[1], false, NULL, 20000, 20000, "x", &all_of),
                PM_OK);
            const struct pm_geometry *g = &all_of.geometry;
            const struct pm_move *last = &g->move[g->count - 1];
            assert_true(last->kind == PM_MOVE_WINDOW && last->y == 0 && last->x == 0);
            assert_true(!pm_geometry_is_mirrored(g) && g->count <= 2);
        }
        pm_arena_destroy(&c.arena);
    }
    assert_int_equal(count, 5 * 12 * 12);
    struct config c = config("deeplab", "min_resize=513 max_resize=513 resize_factor=16");
    assert_int_equal(pm_preprocessing_frame(c.row, c.cfg, 375, 500, 513, 513, false, "x", &p),
                     PM_OK);
    assert_int_equal(p.height, 385);
    assert_int_equal(p.width, 513);
    pm_arena_destroy(&c.arena);
    for (const cJSON *o = cJSON_GetObjectItem(all, "scales")->child; o; o = o->next) {
        const cJSON *list = cJSON_GetObjectItem(o, "scales");
        const int n = cJSON_GetArraySize(list);
        c = golden_config(o);
        for (int i = 0; i < 1000; i++) {
            const struct pm_draws d = { .side = i / 1000.0 };
            const float scale = (float)cJSON_GetArrayItem(list, i * n / 1000)->valuedouble;
            assert_int_equal(place_size(c.row, c.cfg, 1000, 1003, true, &d, 9, 9, "x", &all_of),
                             PM_OK);
            const struct pm_move *first = &all_of.geometry.move[0];
            const bool same = first->kind == PM_MOVE_WINDOW; /* scale 1 has no move */
            assert_int_equal(same ? 1000 : first->height, (int)(1000 * scale));
            assert_int_equal(same ? 1003 : first->width, (int)(1003 * scale));
        }
        pm_arena_destroy(&c.arena);
    }
    cJSON_Delete(all);
}

/* A picture whose values encode the place, and a map of the same: for any random numbers picture
 * and map agree to half an element, and both are padded at the same places. */
static void map_follows_picture(void **state)
{
    enum { H = 40, W = 52, CROP_H = 33, CROP_W = 29 };
    static const char *const options[] = { "", "min_resize=61", "min_resize=30 max_resize=33" };
    static uint8_t pixels[H * W * 3];
    static uint16_t values[H * W];
    static int32_t map[CROP_H * CROP_W];
    const struct pm_image8 im = { H, W, 3, pixels };
    const struct pm_label label = { H, W, values };
    int padded = 0, flipped = 0;

    (void)state;
    for (int i = 0; i < H * W; i++) {
        pixels[3 * i] = (uint8_t)(4 * (i / W));
        pixels[3 * i + 1] = (uint8_t)(4 * (i % W));
        values[i] = (uint16_t)(1000 + i); /* beyond 8 bits */
    }
    for (int k = 0; k < 150; k++) {
        struct config c = config("deeplab_means", options[k % 3]);
        struct pm_rng rng = pm_rng_make(1, 2, 3, (uint32_t)k);
        struct pm_draws d;
        c.row->draw(c.cfg, &rng, &(struct pm_scene){ H, W, 0, NULL, 0 }, &d);
        float *out = run(&c, &im, true, &d, CROP_H, CROP_W);
        assert_int_equal(
            place_map(c.row, c.cfg, &label, &im, true, &d, CROP_H, CROP_W, 9, map, "x"), PM_OK);
        for (int i = 0; i < CROP_H * CROP_W; i++) {
            const double y = (out[3 * i] + 123.15) / 4, x = (out[3 * i + 1] + 115.90) / 4;
            if (map[i] == 9) {
                assert_true(fabs((double)out[3 * i]) + fabs((double)out[3 * i + 1]) < 1e-4);
                padded++;
                continue;
            }
            /* Two resizings round twice. */
            const double most = k % 3 ? 1.51 : 0.501;
            assert_true(fabs((map[i] - 1000) / W - y) <= most);
            assert_true(fabs((map[i] - 1000) % W - x) <= most);
        }
        flipped += d.flip;
        pm_free(out);
        pm_arena_destroy(&c.arena);
    }
    assert_true(padded > 0);
    assert_in_range(flipped, 40, 110);
}

/* Corners are aligned: from 2 to 3 values the new one is the mean; from 33 to 513 each 16th
 * value is the same. */
static void corners(void **state)
{
    struct config c = config("deeplab_means", "min_resize=513");
    struct pm_image8 im = patterned(33, 33, 3);
    float *out = run(&c, &im, false, NULL, 513, 513);

    (void)state;
    for (int y = 0; y < 33; y++)
        for (int x = 0; x < 33; x++)
            assert_float_equal(out[(16 * y * 513 + 16 * x) * 3] + 123.15f,
                               im.pixels[(y * 33 + x) * 3], 1e-3);
    pm_free(out);
    pm_image_free(&im);
    pm_arena_destroy(&c.arena);
    c = config("deeplab_means", "min_resize=3");
    im = patterned(2, 2, 3);
    out = run(&c, &im, false, NULL, 3, 3);
    assert_float_equal(out[3] + 123.15f, (im.pixels[0] + im.pixels[3]) / 2.0f, 1e-4);
    assert_float_equal(out[6] + 123.15f, im.pixels[3], 1e-4);
    pm_free(out);
    pm_image_free(&im);
    pm_arena_destroy(&c.arena);
}

/* A grey picture as one channel, and a colour picture converted to grey. */
static void grey(void **state)
{
    struct config c = config("deeplab", "");
    struct pm_image8 one = patterned(5, 7, 1), three = patterned(5, 7, 3);
    float *out = run_as(&c, &one, false, NULL, 6, 8, 1);

    (void)state;
    for (int i = 0; i < 5 * 7; i++)
        assert_float_equal(out[i / 7 * 8 + i % 7], one.pixels[i] / 127.5 - 1, 1e-6);
    for (int i = 0; i < 6; i++)
        assert_float_equal(out[i * 8 + 7], 0, 1e-6);
    pm_free(out);
    out = run_as(&c, &three, false, NULL, 6, 8, 1);
    for (int i = 0; i < 5 * 7; i++) {
        const uint8_t *p = three.pixels + 3 * i;
        assert_float_equal(out[i / 7 * 8 + i % 7],
                           (0.2989 * p[0] + 0.5870 * p[1] + 0.1140 * p[2]) / 127.5 - 1, 1e-6);
    }
    for (int i = 0; i < 8; i++)
        assert_float_equal(out[5 * 8 + i], 0, 1e-6);
    pm_free(out);
    pm_image_free(&one);
    pm_image_free(&three);
    pm_arena_destroy(&c.arena);
}

static void refusals(void **state)
{
    struct config c = config("deeplab", "min_resize=20");
    struct pm_image8 im = patterned(10, 15, 3);
    struct pm_label label = labelled(15, 10);
    struct pm_normal normal;
    float out[3];
    int32_t map[1];

    (void)state;
    assert_fails(place_picture(c.row, c.cfg, &im, false, NULL, 25, 25, 3, out, "a.jpg"), PM_EDATA,
                 "a.jpg", "10 x 15", "20 x 30", "25 x 25", "input.eval_size");
    assert_fails(place_map(c.row, c.cfg, &label, &im, false, NULL, 40, 40, 0, map, "a.jpg"),
                 PM_EDATA, "a.jpg", "10 x 15", "15 x 10");
    pm_image_free(&im);
    pm_arena_destroy(&c.arena);
    static const char *const wrong[][2] = { { "max_resize=20", "min_resize" },
                                            { "resize_factor=16", "min_resize" },
                                            { "min_scale=3", "max_scale" } };
    im = patterned(1, 1, 3);
    for (size_t i = 0; i < PM_COUNT(wrong); i++) {
        c = config("deeplab_means", wrong[i][0]);
        assert_fails(place_picture(c.row, c.cfg, &im, false, NULL, 25, 25, 3, out, "a"), PM_ECONFIG,
                     wrong[i][1]);
        assert_fails(c.row->normal(c.cfg, 3, &normal), PM_ECONFIG, wrong[i][1]);
        pm_arena_destroy(&c.arena);
    }
    pm_image_free(&im);
    /* A side would become 0 or too large. */
    c = config("deeplab", "min_resize=16384 max_resize=10");
    im = patterned(1, 100, 3);
    assert_fails(place_picture(c.row, c.cfg, &im, false, NULL, 25, 25, 3, out, "thin"), PM_EDATA,
                 "thin");
    pm_arena_destroy(&c.arena);
    c = config("deeplab", "min_resize=16384");
    pm_image_free(&im);
    im = patterned(1, 30000, 3);
    assert_fails(place_picture(c.row, c.cfg, &im, false, NULL, 25, 25, 3, out, "thin"), PM_EDATA,
                 "thin");
    pm_arena_destroy(&c.arena);
    pm_image_free(&im);
    pm_free(label.values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden),
        cmocka_unit_test(sizes),
        cmocka_unit_test(map_follows_picture),
        cmocka_unit_test(corners),
        cmocka_unit_test(grey),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
