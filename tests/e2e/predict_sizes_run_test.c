/* predict of a segmentation: pictures smaller than the input go through the net at their own size.
 * In a folder of more sizes than plans are kept, each prediction is that of the picture predicted
 * alone with an input of its size; the report has the pictures in their order. */
#include "base/command.h"

#include <pumice/data.h>

enum { INPUT = 65, PICTURES = 14 };

static const char net[] =
    "{ \"task\": \"segmentation\", \"model\": { \"layers\": ["
    "  { \"name\": \"c1\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 2,"
    "    \"activation\": \"relu\", \"weights_init\": \"normal(1)\" },"
    "  { \"name\": \"c2\", \"layer\": \"conv2d\", \"filters\": 8, \"dilation\": 2,"
    "    \"activation\": \"relu\", \"weights_init\": \"normal(1)\" },"
    "  { \"name\": \"logits\", \"layer\": \"conv2d\", \"filters\": 5, \"kernel\": 1,"
    "    \"weights_init\": \"normal(1)\" } ] },"
    "  \"data\": { \"folder\": \"shapes\", \"eval_split\": \"test\" }, \"devices\": [\"cpu\"],"
    "  \"input\": { \"preprocessing\": \"deeplab\", \"size\": 33, \"eval_size\": 65 },"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 1e-6 },"
    "  \"run\": { \"folder\": \"run\", \"batch_size\": 8, \"steps\": 1 },"
    "  \"eval\": { \"batch_size\": 4 } }";

/* Two of the input's size, two of one smaller size, the others all different. */
static void size_of(int i, int *height, int *width)
{
    *height = i < 2 ? INPUT : i < 4 ? 40 : 20 + 3 * i;
    *width = i < 2 ? INPUT : i < 4 ? 33 : INPUT - 2 * i;
}

static void write_pictures(void)
{
    char name[64];

    for (int i = 0; i < PICTURES; i++) {
        struct pm_image8 im = { .channels = 3 };
        uint8_t *png = NULL;
        size_t size, count;

        size_of(i, &im.height, &im.width);
        count = 3 * (size_t)im.height * (size_t)im.width;
        im.pixels = pm_malloc(count);
        for (size_t k = 0; k < count; k++)
            im.pixels[k] = (uint8_t)(pm_permute(7, (uint64_t)i, count, k) % 251);
        snprintf(name, sizeof name, "pictures/p%02d.png", i);
        assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
        assert_int_equal(pm_file_write(in_folder(name), png, size), PM_OK);
        pm_free(png);
        pm_image_free(&im);
    }
}

/* The prediction's picture is that of the same file in the other folder. */
static void same_picture(int i)
{
    char name[2][64];
    size_t size[2];
    char *data[2];

    for (int k = 0; k < 2; k++) {
        snprintf(name[k], sizeof name[k], "%s/p%02d_prediction.png", k ? "alone" : "mixed", i);
        data[k] = read_bytes(name[k], &size[k]);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(data[0], data[1], size[0]);
    pm_free(data[0]);
    pm_free(data[1]);
}

static void mixed_sizes(void **state)
{
    cJSON *mixed, *images;

    (void)state;
    assert_int_equal(pm_file_write(in_folder("seg.json"), net, sizeof net - 1), PM_OK);
    assert_int_equal(pumice("train seg.json"), 0);
    assert_int_equal(pm_make_folders(in_folder("pictures")), PM_OK);
    write_pictures();
    assert_int_equal(pm_file_write(in_folder("pictures/p03b.jpg"), "broken", 6), PM_OK);
    assert_int_equal(pumice("predict seg.json pictures --out mixed --json"), 3); /* p03b.jpg */
    char *text = read_text("out");
    mixed = cJSON_Parse(text);
    images = cJSON_GetObjectItem(mixed, "images");
    assert_int_equal(cJSON_GetArraySize(images), PICTURES + 1);
    for (int i = 0; i < PICTURES; i++) {
        const cJSON *said = cJSON_GetArrayItem(images, i < 4 ? i : i + 1);
        char arguments[256];
        int height, width;

        size_of(i, &height, &width);
        snprintf(arguments, sizeof arguments, "predict seg.json pictures/p%02d.png --out alone "
                 "--json input.eval_size=[%d,%d]", i, height, width);
        cJSON *alone = report_of(arguments);
        const cJSON *want = cJSON_GetArrayItem(cJSON_GetObjectItem(alone, "images"), 0);
        if (!cJSON_Compare(said, want, true))
            fail_msg("picture %d is predicted otherwise alone: %s", i, cJSON_Print(said));
        same_picture(i);
        cJSON_Delete(alone);
    }
    assert_non_null(cJSON_GetObjectItem(cJSON_GetArrayItem(images, 4), "error"));
    cJSON_Delete(mixed);
    pm_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(mixed_sizes) };

    return run_commands("predict_sizes_run_test", tests, PM_COUNT(tests), true);
}
