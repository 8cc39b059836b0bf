/* A photograph stored on its side, with an orientation tag, is predicted and drawn like the
 * upright one: the same answer and the same pixels. */
#include "e2e/program.h"

#include "data/exif_common.h"

enum { SIDE = 40, LONG = 64 };

static struct pm_image8 photo(void)
{
    struct pm_image8 im = { SIDE, LONG, 3, pm_malloc(SIDE * LONG * 3) };

    for (int i = 0; i < SIDE * LONG * 3; i++)
        im.pixels[i] = (uint8_t)(i % 3 * 60 + i / 3 % LONG * 2 + i / 3 / LONG);
    return im;
}

/* Rotates by 90 degrees clockwise, as orientation 6 requires. */
static struct pm_image8 clockwise(const struct pm_image8 *im)
{
    struct pm_image8 out = { im->width, im->height, 3,
                             pm_malloc((size_t)im->width * (size_t)im->height * 3) };

    for (int y = 0; y < out.height; y++)
        for (int x = 0; x < out.width; x++)
            memcpy(out.pixels + (y * out.width + x) * 3,
                   im->pixels + ((im->height - 1 - x) * im->width + y) * 3, 3);
    return out;
}

static void put(const char *name, uint8_t *data, size_t size)
{
    if (pm_file_write(in("pictures/%s", name), data, size) < 0)
        fail_msg("%s", pm_error_text());
    pm_free(data);
}

/* stored.jpg lies on its side with an orientation tag; upright.png has its pixels, rotated here. */
static void make_pictures(void)
{
    struct pm_image8 im = photo(), pixels, turned;
    uint8_t body[EXIF_SIZE], *jpeg, *png;
    size_t size;

    assert_int_equal(pm_make_folders(in("pictures")), 0);
    assert_int_equal(pm_image_encode_jpeg(&im, 90, &jpeg, &size), 0);
    assert_int_equal(pm_image_decode(jpeg, size, 3, 0, "photo", &pixels), 0);
    exif_body(true, 6, body);
    put("stored.jpg", exif_jpeg(jpeg, size, body, EXIF_SIZE), size + EXIF_JPEG_MORE);
    turned = clockwise(&pixels);
    assert_int_equal(pm_image_encode_png(&turned, &png, &size), 0);
    put("upright.png", png, size);
    pm_free(jpeg);
    pm_image_free(&im);
    pm_image_free(&pixels);
    pm_image_free(&turned);
}

static void predicted(void **state)
{
    (void)state;
    make_pictures();
    check(run(NULL, "train %s run.folder=%s run.steps=3", in("net.json"), in("run")), 0);
    struct result r = run(NULL, "predict %s %s run.folder=%s --json --out %s", in("net.json"),
                          in("pictures"), in("run"), in("drawn"));
    cJSON *json = json_of(&r);
    const cJSON *images = cJSON_GetObjectItem(json, "images");
    assert_int_equal(cJSON_GetArraySize(images), 2);
    const cJSON *a = cJSON_GetObjectItem(cJSON_GetArrayItem(images, 0), "top");
    const cJSON *b = cJSON_GetObjectItem(cJSON_GetArrayItem(images, 1), "top");
    assert_non_null(a);
    assert_true(cJSON_Compare(a, b, true));
    same_bytes(in("drawn/stored.png"), in("drawn/upright.png"));
    cJSON_Delete(json);
    check(r, 0);
}

static int make(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(predicted) };

    return cmocka_run_group_tests(tests, make, drop_world);
}
