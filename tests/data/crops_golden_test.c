/* Rows that crop and pad compared with TensorFlow's Object Detection API: tests/golden/crops.json,
 * which crops.py computed with given draws. Boxes, labels, weights, scores, keypoints, masks and
 * pixels of the picture must be the same. */
#include "preprocessing_common.h"

enum { HEIGHT = 64, WIDTH = 128, OBJECTS = 8, POINTS = 2, SCORES = 2, PLACES = 4, CASES = 57 };
/* The input's size: no padded picture is larger. */
enum { IN_HEIGHT = 3 * HEIGHT, IN_WIDTH = 3 * WIDTH };

/* As scene(), picture() and masks() of the script. */
struct scene {
    uint32_t seed;
    uint8_t pixels[HEIGHT * WIDTH * 3], masks[OBJECTS][HEIGHT * WIDTH];
    float boxes[OBJECTS][4], points[OBJECTS][POINTS][2], scores[OBJECTS][SCORES];
    float weights[OBJECTS];
    int32_t labels[OBJECTS];
    struct pm_image8 im;
    struct pm_sample sample;
};

static int draw(struct scene *s, int below)
{
    s->seed = (s->seed * 1103515245u + 12345u) & 0x7fffffffu;
    return (int)((s->seed >> 16) % (uint32_t)below);
}

static void draw_box(struct scene *s, int i)
{
    int y = draw(s, 800), x = draw(s, 800), h = 60 + draw(s, 964 - y), w = 60 + draw(s, 964 - x);

    if (i % 3 == 2)
        y = draw(s, 2) ? 0 : 1024 - h;
    s->boxes[i][0] = (float)y / 1024, s->boxes[i][1] = (float)x / 1024;
    s->boxes[i][2] = (float)(y + h) / 1024, s->boxes[i][3] = (float)(x + w) / 1024;
}

static void draw_mask(struct scene *s, int i)
{
    const float *b = s->boxes[i];

    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            const float fy = ((float)y + 0.5f) / HEIGHT, fx = ((float)x + 0.5f) / WIDTH;

            s->masks[i][y * WIDTH + x] =
                fy > b[0] && fx > b[1] && fy < b[2] && fx < b[3] && (x + y) % 5;
        }
}

static void open_scene(struct scene *s, int index)
{
    s->seed = (uint32_t)index + 1;
    for (int i = 0; i < OBJECTS; i++) {
        draw_box(s, i);
        for (int k = 0; k < POINTS * 2; k++)
            s->points[i][k / 2][k % 2] = (float)draw(s, 1025) / 1024;
        for (int k = 0; k < SCORES; k++)
            s->scores[i][k] = (float)draw(s, 1025) / 1024;
        s->labels[i] = i + 1;
        s->weights[i] = (float)i + 0.5f;
        draw_mask(s, i);
    }
    for (int i = 0; i < HEIGHT * WIDTH; i++) {
        s->pixels[3 * i] = (uint8_t)(i / WIDTH);
        s->pixels[3 * i + 1] = (uint8_t)(i % WIDTH);
        s->pixels[3 * i + 2] = 200;
    }
    s->im = (struct pm_image8){ HEIGHT, WIDTH, 3, s->pixels };
    s->sample = (struct pm_sample){ .picture = &s->im, .objects = OBJECTS, .boxes = s->boxes[0],
                                    .masks = s->masks[0], .keypoints = s->points[0][0],
                                    .points = POINTS, .labels = s->labels, .weights = s->weights,
                                    .scores = s->scores[0], .score_count = SCORES };
}

/* ---- a case ---------------------------------------------------------------------------------- */

static double item(const cJSON *list, int i)
{
    const cJSON *v = cJSON_GetArrayItem(list, i);

    return cJSON_IsNull(v) ? NAN : v->valuedouble;
}

static int whole(const cJSON *o, const char *key)
{
    return (int)cJSON_GetObjectItem(o, key)->valuedouble;
}

static struct pm_draws draws_of(const cJSON *o)
{
    const cJSON *box = cJSON_GetObjectItem(o, "box"), *window = cJSON_GetObjectItem(o, "window");
    struct pm_draws d = { 0 };

    for (int k = 0; k < 4; k++) {
        d.box[k] = box ? (int)item(box, k) : 0;
        d.window[k] = window ? (int)item(window, k) : 0;
    }
    if (cJSON_HasObjectItem(o, "which"))
        d.which = whole(o, "which");
    return d;
}

static void near(const cJSON *c, const char *what, int i, double have, double want, double most)
{
    if (isnan(want) ? !isnan(have) : !(fabs(have - want) <= OPS * ulp * most))
        fail_msg("%s of scene %d: %s %d is %.9g, the golden %.9g",
                 cJSON_GetObjectItem(c, "name")->valuestring, whole(c, "scene"), what, i, have,
                 want);
}

/* Shares of the input become shares of the picture, whose upper left corner is the input's. */
static void compare_places(const cJSON *c, const char *what, const float *have, int count)
{
    const cJSON *list = cJSON_GetObjectItem(c, what);
    const double size[2] = { (double)IN_HEIGHT / whole(c, "height"),
                             (double)IN_WIDTH / whole(c, "width") };

    if (!list)
        return;
    assert_int_equal(cJSON_GetArraySize(list), count);
    for (int i = 0; i < count; i++)
        near(c, what, i, (double)have[i] * size[i % 2], item(list, i),
             fmax(1, fabs(item(list, i))));
}

static void compare_masks(const cJSON *c, const struct pm_sample *out)
{
    const cJSON *list = cJSON_GetObjectItem(c, "masks");

    for (int i = 0; list && i < (int)out->objects; i++) {
        const uint8_t *m = out->masks + (size_t)i * IN_HEIGHT * IN_WIDTH;
        const cJSON *want = cJSON_GetArrayItem(list, i);
        int sums[3] = { 0 };

        for (int k = 0; k < IN_HEIGHT * IN_WIDTH; k++)
            if (m[k])
                sums[0]++, sums[1] += k / IN_WIDTH, sums[2] += k % IN_WIDTH;
        for (int k = 0; k < 3; k++)
            near(c, "mask", i, sums[k], item(want, k), 0);
    }
}

static void compare_objects(const cJSON *c, const struct scene *s, const struct pm_sample *out)
{
    const cJSON *labels = cJSON_GetObjectItem(c, "labels");
    const int count = cJSON_GetArraySize(labels);

    if ((int)out->objects != count)
        fail_msg("%s of scene %d: %d objects, the golden has %d",
                 cJSON_GetObjectItem(c, "name")->valuestring, whole(c, "scene"),
                 (int)out->objects, count);
    for (int i = 0; i < count; i++) {
        const int from = (int)item(labels, i) - 1;

        assert_int_equal(out->labels[i], from + 1);
        assert_int_equal(out->from[i], from);
        assert_true(out->weights[i] == s->weights[from]);
        assert_memory_equal(out->scores + SCORES * i, s->scores[from], sizeof s->scores[from]);
    }
    compare_places(c, "boxes", out->boxes, 4 * count);
    compare_places(c, "keypoints", out->keypoints, 2 * POINTS * count);
    compare_masks(c, out);
}

/* The input is 2 / 255 * pixel - 1, and 0 beside the picture. */
static void compare_picture(const cJSON *c, const struct pm_placed *p, const struct pm_image8 *im)
{
    static float out[IN_HEIGHT * IN_WIDTH * 3];
    const cJSON *list = cJSON_GetObjectItem(c, "pixels");
    const int height = whole(c, "height"), width = whole(c, "width");

    assert_int_equal(cJSON_GetArraySize(list), PLACES * PLACES * 3);
    pm_placed_picture(p, im, out);
    for (int i = 0; i < PLACES * PLACES * 3; i++) {
        const int y = i / 3 / PLACES * (height - 1) / (PLACES - 1);
        const int x = i / 3 % PLACES * (width - 1) / (PLACES - 1);

        near(c, "pixel", i, ((double)out[(y * IN_WIDTH + x) * 3 + i % 3] + 1) * 255 / 2,
             item(list, i), 255);
    }
    for (int k = 0; k < 3; k++) {
        assert_true(out[height * IN_WIDTH * 3 + k] == 0);
        assert_true(out[width * 3 + k] == 0);
    }
}

static struct pm_input input_of(const cJSON *c, const struct config *ssd)
{
    cJSON *row = cJSON_Duplicate(cJSON_GetObjectItem(c, "options"), true);
    cJSON *list = cJSON_CreateArray();
    struct pm_input in = { ssd->row, ssd->cfg, NULL };

    cJSON_AddStringToObject(row, "name", cJSON_GetObjectItem(c, "name")->valuestring);
    cJSON_AddItemToArray(list, row);
    if (pm_augment_open(list, "x.json: input.augment", ssd->arena, &in.augment) < 0)
        fail_msg("%s", pm_error_text());
    cJSON_Delete(list);
    return in;
}

static void one_case(const cJSON *c, struct scene *s)
{
    const struct pm_occasion o = { .height = IN_HEIGHT, .width = IN_WIDTH, .channels = 3,
                                   .train = true, .where = "x" };
    const struct pm_draws draws = draws_of(cJSON_GetObjectItem(c, "draws"));
    struct config ssd = config("ssd", "resizer=pad_to_multiple");
    const struct pm_input in = input_of(c, &ssd);
    struct pm_placed placed;
    struct pm_sample out;

    open_scene(s, whole(c, "scene"));
    if (pm_place_list(&in, &draws, &s->sample, &o, &placed) < 0)
        fail_msg("%s", pm_error_text());
    pm_placed_objects(&placed, &s->sample, ssd.arena, &out);
    compare_objects(c, s, &out);
    compare_picture(c, &placed, &s->im);
    pm_arena_destroy(&ssd.arena);
}

static void golden(void **state)
{
    cJSON *all = golden_file("crops.json");
    struct scene *s = pm_malloc(sizeof *s);
    const cJSON *c;
    int cases = 0;

    (void)state;
    cJSON_ArrayForEach(c, cJSON_GetObjectItem(all, "cases")) {
        one_case(c, s);
        cases++;
    }
    assert_int_equal(cases, CASES);
    pm_free(s);
    cJSON_Delete(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(golden) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
