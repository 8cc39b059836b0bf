/* Frames of training pictures (input.buckets): the smallest input that holds a picture. */
#include "tasks/segmentation/segmentation.h"
#include "tasks/segmentation/segmentation_setup.h"
#include "tasks/task_fields.h"

#include <pumice/sample.h>

#include <cjson/cJSON.h>

enum { HEIGHT = 7, WIDTH = 9, MOST = 64 };

/* A picture of HEIGHT x WIDTH, all of class 0. */
static void make_record(uint8_t **out, size_t *size)
{
    struct pm_example_builder *b = pm_example_builder_create();
    uint8_t pixels[HEIGHT * WIDTH * 3], label[HEIGHT * WIDTH] = { 0 };

    for (int i = 0; i < HEIGHT * WIDTH * 3; i++)
        pixels[i] = (uint8_t)(i * 37 + 11);
    add_picture(b, "image/encoded", HEIGHT, WIDTH, 3, pixels);
    pm_example_add_bytes(b, "image/format", "png", 3);
    add_picture(b, "image/segmentation/class/encoded", HEIGHT, WIDTH, 1, label);
    pm_example_serialise(b, out, size);
    pm_example_builder_destroy(&b);
}

/* Makes a training example in this frame. Returns the number of pixels of the map that are not
 * padding. */
static int pixels_in_frame(const struct pm_task *s, struct pm_frame frame, uint32_t example)
{
    static float image[MOST * MOST * 3];
    static int32_t map[MOST * MOST];
    const struct pm_sampler sampler = { .task = s, .train = true };
    uint8_t *bytes;
    size_t size;
    int count = 0;

    make_record(&bytes, &size);
    const struct pm_loader_record r = { .bytes = bytes, .size = size, .seed = 7, .step = 3,
                                        .example = example, .where = "a record", .frame = frame };
    assert_int_equal(task()->make((void *)&sampler, &r, (void *[]){ image, map }), PM_OK);
    for (int i = 0; i < frame.height * frame.width; i++)
        count += map[i] != 255;
    pm_free(bytes);
    return count;
}

/* The frame that a training picture needs is its size after the random scale of this example,
 * with the same random numbers. It holds the whole picture and nothing else, for the named
 * preprocessing and for a list. */
static void frames_of_training(void **state)
{
    static const char *const lists[] = {
        NULL, "[{\"name\": \"random_flip\"}, {\"name\": \"random_scale\", \"min_scale\": 1, "
              "\"max_scale\": 3, \"scale_step\": 0}, {\"name\": \"crop_or_pad\"}]" };
    struct pm_arena *a = pm_arena_create();

    (void)state;
    for (size_t k = 0; k < PM_COUNT(lists); k++) {
        struct pm_task s = segmentation_setup(a, WIDTH, WIDTH, 3);
        cJSON *json = lists[k] ? cJSON_Parse(lists[k]) : NULL;
        int different = 0;

        assert_int_equal(pm_augment_open(json, "augment", a, &s.facts.augment), PM_OK);
        for (uint32_t i = 0; i < 12; i++) {
            const struct pm_occasion o = { .train = true, .seed = 7, .step = 3, .example = i };
            struct pm_frame need, more;

            assert_int_equal(task()->frame(&s, &o, HEIGHT, WIDTH, &need), PM_OK);
            assert_true(need.height >= 3 && need.height < HEIGHT * 4 && need.width < WIDTH * 4);
            more = (struct pm_frame){ need.height + 1, need.width + 2 };
            assert_int_equal(pixels_in_frame(&s, need, i), need.height * need.width);
            assert_int_equal(pixels_in_frame(&s, more, i), need.height * need.width);
            different += need.height != HEIGHT;
        }
        assert_true(different > 2);
        cJSON_Delete(json);
    }
    pm_arena_destroy(&a);
}

/* The size of a reduced label map depends on the frame. */
static void label_sizes(void **state)
{
    struct pm_task s = { .facts = { .height = 33, .width = 17 },
                         .pixels = { .label_height = 9, .label_width = 5 } };
    struct pm_label_size other = { { 17, 17 }, { 5, 5 } };

    (void)state;
    s.pixels.label_sizes = &other;
    s.pixels.label_sizes_count = 1;
    for (int train = 0; train < 2; train++)
        for (int upsample = 0; upsample < 2; upsample++) {
            const struct pm_frame large = { 33, 17 }, small = { 17, 17 };
            const bool logits = train && !upsample;

            s.pixels.upsample_logits = upsample;
            assert_int_equal(pm_segmentation_label_frame(&s, train, large).height,
                             logits ? 9 : 33);
            assert_int_equal(pm_segmentation_label_frame(&s, train, small).height,
                             logits ? 5 : 17);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_of_training),
        cmocka_unit_test(label_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
