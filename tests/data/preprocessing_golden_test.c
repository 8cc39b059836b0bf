/* Preprocessings compared with TensorFlow's own results in tests/golden/preprocessing.json
 * (tests/golden/preprocessing.py writes and describes it). */
#include "preprocessing_common.h"

static double number(const cJSON *o, const char *key, double otherwise)
{
    const cJSON *v = cJSON_GetObjectItem(o, key);
    return v ? v->valuedouble : otherwise;
}

static struct pm_draws golden_draws(const cJSON *o)
{
    struct pm_draws d = { .side = number(o, "side", 0),
                          .crop_y = number(o, "crop_y", 0),
                          .crop_x = number(o, "crop_x", 0),
                          .flip = number(o, "flip", 0) != 0,
                          .resize_method = (int)number(o, "resize_method", 0),
                          .color_ordering = (int)number(o, "color_ordering", 0),
                          .brightness = number(o, "brightness", 0),
                          .contrast = number(o, "contrast", 0),
                          .saturation = number(o, "saturation", 0),
                          .hue = number(o, "hue", 0) };
    const cJSON *box = cJSON_GetObjectItem(o, "box");
    for (int i = 0; box && i < 4; i++)
        d.box[i] = cJSON_GetArrayItem(box, i)->valueint;
    return d;
}

/* Both sides use float32 here, so the tolerance is doubled. top: the largest number during the
 * computation, in units of the result. */
static void golden_case(const cJSON *o, const struct pm_image8 *im)
{
    const char *name = cJSON_GetObjectItem(o, "name")->valuestring;
    const cJSON *v = cJSON_GetObjectItem(o, "out")->child;
    const bool resized = !strcmp(name, "resize");
    float resize_out[9 * 8 * 3], *out = resize_out;
    const int channels = (int)number(o, "channels", 3);
    double top = 255;
    int i = 0;

    if (resized) {
        struct pm_view8 in = pm_view8_of(im);
        in = pm_view_crop(in, 0, 0, (int)number(o, "height", im->height),
                          (int)number(o, "width", im->width));
        pm_resize(in, (enum pm_resize)number(o, "method", 0), 9, 8, out);
        top = 3 * 255; /* bicubic weights */
    } else {
        struct config c = config(name, cJSON_GetObjectItem(o, "options")->valuestring);
        const struct pm_draws d = golden_draws(cJSON_GetObjectItem(o, "draws"));
        out = run_as(&c, im, cJSON_IsTrue(cJSON_GetObjectItem(o, "train")), &d, 9, 8, channels);
        if (!strcmp(name, "cifarnet"))
            top = 573.0 / 10; /* the deviation before standardisation is above 10 */
        else if (strcmp(name, "vgg"))
            top = 2 * 1.8 * 3 * 1.5 * 6; /* bicubic weights add up to 3 */
        pm_arena_destroy(&c.arena);
    }
    for (; v; v = v->next, i++)
        if (!(fabs(out[i] - v->valuedouble) <= 2 * OPS * ulp * top))
            fail_msg("%s, value %d: %.9g, TensorFlow gives %.9g", name, i, (double)out[i],
                     v->valuedouble);
    assert_int_equal(i, 9 * 8 * channels);
    if (!resized)
        pm_free(out);
}

static void golden(void **state)
{
    struct pm_image8 im = { 21, 27, 3, pm_malloc(21 * 27 * 3) };
    int cases = 0;

    (void)state;
    for (int y = 0; y < 21; y++)
        for (int x = 0; x < 27; x++)
            for (int c = 0; c < 3; c++)
                im.pixels[(y * 27 + x) * 3 + c] =
                    (uint8_t)(64 + (y * y * 3 + x * 7 * (c + 1) + x * y % 29 * 5 + c * 40) % 128);
    cJSON *all = golden_file("preprocessing.json");
    for (const cJSON *o = cJSON_GetObjectItem(all, "cases")->child; o; o = o->next, cases++)
        golden_case(o, &im);
    assert_int_equal(cases, 48);
    cJSON_Delete(all);
    pm_image_free(&im);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(golden) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
