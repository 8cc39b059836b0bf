/* autoaugment_image: its operations compared with TensorFlow's on a small picture
 * (tests/golden/autoaugment.py), its random choices, and its policies. */
#include "data/augment_auto.h"
#include "preprocessing_common.h"

enum { HEIGHT = 30, WIDTH = 32, BYTES = HEIGHT * WIDTH * 3, BOXES = 3, MANY = 3000 };

struct scene {
    struct pm_arena *arena;
    struct list list;
    struct config c;
    struct pm_input input;
    uint8_t pixels[BYTES];
    struct pm_image8 im;
    float boxes[BOXES * 4], points[BOXES * 2];
    uint8_t masks[BOXES * HEIGHT * WIDTH];
    struct pm_sample sample, out;
    struct pm_placed placed;
};

/* The golden's picture. */
static void paint(uint8_t *pixels)
{
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            for (int c = 0; c < 3; c++)
                *pixels++ = (uint8_t)(20 + (y * y * 3 + x * 7 * (c + 1) + x * y % 29 * 5 + c * 40) %
                                               211);
}

static void set_boxes(struct scene *s, const cJSON *boxes)
{
    for (int i = 0; i < BOXES; i++)
        for (int k = 0; k < 4; k++)
            s->boxes[4 * i + k] = (float)cJSON_GetArrayItem(cJSON_GetArrayItem(boxes, i), k)
                                      ->valuedouble;
}

/* list: options of the row after its name. */
static void open_scene(struct scene *s, const char *options, const cJSON *boxes)
{
    char list[400];

    memset(s, 0, sizeof *s);
    s->c = config("ssd", "");
    s->arena = pm_arena_create();
    snprintf(list, sizeof list, "[{\"name\": \"autoaugment_image\", %s}]", options);
    s->list = open_list(list);
    s->input = (struct pm_input){ s->c.row, s->c.cfg, s->list.augment };
    s->im = (struct pm_image8){ HEIGHT, WIDTH, 3, s->pixels };
    paint(s->pixels);
    set_boxes(s, boxes);
    s->sample = (struct pm_sample){ .picture = &s->im, .objects = BOXES, .boxes = s->boxes,
                                    .masks = s->masks, .keypoints = s->points, .points = 1 };
    for (int i = 0; i < BOXES; i++) { /* a keypoint in the middle of a pixel, which is the mask */
        const float *b = s->boxes + 4 * i;
        const int y = (int)((b[0] + b[2]) / 2 * HEIGHT), x = (int)((b[1] + b[3]) / 2 * WIDTH);

        s->points[2 * i] = ((float)y + 0.5f) / HEIGHT;
        s->points[2 * i + 1] = ((float)x + 0.5f) / WIDTH;
        for (int k = 0; k < 9; k++)
            s->masks[(i * HEIGHT + y - 1 + k / 3) * WIDTH + x - 1 + k % 3] = 1;
    }
}

static void close_scene(struct scene *s)
{
    close_list(&s->list);
    pm_arena_destroy(&s->arena);
    pm_arena_destroy(&s->c.arena);
}

/* Values 0..255 after the row. */
static void place_scene(struct scene *s, uint32_t example, int out[BYTES])
{
    static float picture[BYTES];
    const struct pm_occasion o = { .height = HEIGHT, .width = WIDTH, .channels = 3, .train = true,
                                   .seed = 5, .step = 6, .example = example, .where = "x" };

    if (pm_place(&s->input, &s->sample, &o, &s->placed) < 0)
        fail_msg("%s", pm_error_text());
    pm_placed_objects(&s->placed, &s->sample, s->arena, &s->out);
    pm_placed_picture(&s->placed, &s->im, picture);
    for (int i = 0; i < BYTES; i++) {
        out[i] = (int)lrint(((double)picture[i] + 1) * 127.5);
        assert_true(fabs(((double)picture[i] + 1) * 127.5 - out[i]) < 1e-3);
    }
}

static void open_step(struct scene *s, const char *name, int level, const cJSON *boxes)
{
    char policy[120];

    snprintf(policy, sizeof policy, "\"policy\": [[[\"%s\", 1, %d]]]", name, level);
    open_scene(s, policy, boxes);
}

/* ---- goldens --------------------------------------------------------------------------------- */

static void wanted_pixels(const cJSON *c, int out[BYTES])
{
    const char *hex = cJSON_GetObjectItem(c, "pixels")->valuestring;

    assert_int_equal(strlen(hex), 2 * BYTES);
    for (int i = 0; i < BYTES; i++) {
        const char digits[3] = { hex[2 * i], hex[2 * i + 1], 0 };

        out[i] = (int)strtol(digits, NULL, 16);
    }
}

static void same_pixels(const char *name, const int *have, const int *want)
{
    for (int i = 0; i < BYTES; i++)
        if (have[i] != want[i])
            fail_msg("%s: pixel %d, %d, channel %d: %d, expected %d", name, i / 3 / WIDTH,
                     i / 3 % WIDTH, i % 3, have[i], want[i]);
}

/* The original truncates a box to pixels before it moves it, and again afterwards: corners are less
 * than (|cos| + |sin|) + 1 pixels away, and a shear of at most 0.3 adds half of it. */
static void near_boxes(const char *name, const struct scene *s, const cJSON *boxes)
{
    for (int i = 0; i < BOXES; i++)
        for (int k = 0; k < 4; k++) {
            const double want = cJSON_GetArrayItem(cJSON_GetArrayItem(boxes, i), k)->valuedouble;
            const double have = s->out.boxes[4 * i + k];

            if (!(fabs(have - want) * (k % 2 ? WIDTH : HEIGHT) < 2.6))
                fail_msg("%s: box %d: %g, expected about %g", name, i, have, want);
        }
}

/* Each mask is around its keypoint, unless that has left the picture. */
static void masks_follow(const char *name, const struct scene *s)
{
    for (int i = 0; i < BOXES; i++) {
        double y = 0, x = 0, count = 0;

        for (int k = 0; k < HEIGHT * WIDTH; k++)
            if (s->out.masks[i * HEIGHT * WIDTH + k]) {
                y += k / WIDTH + 0.5, x += k % WIDTH + 0.5;
                count++;
            }
        const double at[2] = { (double)s->out.keypoints[2 * i] * HEIGHT,
                               (double)s->out.keypoints[2 * i + 1] * WIDTH };

        if (isnan(at[0]) || at[0] < 3 || at[1] < 3 || at[0] > HEIGHT - 3 || at[1] > WIDTH - 3)
            continue;
        if (!(count >= 6 && fabs(y / count - at[0]) < 0.8 && fabs(x / count - at[1]) < 0.8))
            fail_msg("%s: mask %d is at %g, %g, its keypoint at %g, %g", name, i, y / count,
                     x / count, at[0], at[1]);
    }
}

/* Returns an example whose sign is positive. */
static void place_positive(struct scene *s, int have[BYTES])
{
    uint32_t example = 0;

    do
        place_scene(s, example++, have);
    while (s->placed.rows.draws[0].more[3] < 0.5);
}

static void whole_pictures(void **state)
{
    static int have[BYTES], want[BYTES];
    cJSON *all = golden_file("autoaugment.json");
    const cJSON *c;

    (void)state;
    cJSON_ArrayForEach(c, cJSON_GetObjectItem(all, "cases"))
    {
        const char *name = cJSON_GetObjectItem(c, "name")->valuestring;
        struct scene s;

        if (strstr(name, "_Only_"))
            continue;
        open_step(&s, name, cJSON_GetObjectItem(c, "level")->valueint,
                  cJSON_GetObjectItem(all, "boxes"));
        place_positive(&s, have);
        wanted_pixels(c, want);
        same_pixels(name, have, want);
        near_boxes(name, &s, cJSON_GetObjectItem(c, "boxes"));
        masks_follow(name, &s);
        if (!strstr(name, "_BBox"))
            assert_memory_equal(s.out.boxes, s.boxes, sizeof s.boxes);
        close_scene(&s);
    }
    cJSON_Delete(all);
}

/* The box's pixels, as the original finds them. */
static bool in_box(const float *b, int y, int x)
{
    return y >= (int)(HEIGHT * b[0]) && y <= (int)(HEIGHT * b[2]) && x >= (int)(WIDTH * b[1]) &&
           x <= (int)(WIDTH * b[3]);
}

/* Whether the picture is this one in the box. */
static bool is_same(const float *box, const int *have, const int *want)
{
    for (int i = 0; i < BYTES; i++)
        if (in_box(box, i / 3 / WIDTH, i / 3 % WIDTH) && have[i] != want[i])
            return false;
    return true;
}

/* Each box is changed, with a third of the probability, or not. Four standard deviations. */
static void inside_boxes(void **state)
{
    static int have[BYTES], want[BYTES], was[BYTES];
    cJSON *all = golden_file("autoaugment.json");
    const cJSON *c;

    (void)state;
    cJSON_ArrayForEach(c, cJSON_GetObjectItem(all, "cases"))
    {
        const char *name = cJSON_GetObjectItem(c, "name")->valuestring;
        int changed = 0, pictures = 0;
        struct scene s;

        if (!strstr(name, "_Only_"))
            continue;
        open_step(&s, name, cJSON_GetObjectItem(c, "level")->valueint,
                  cJSON_GetObjectItem(all, "boxes"));
        wanted_pixels(c, want);
        for (int i = 0; i < BYTES; i++)
            was[i] = s.pixels[i];
        for (uint32_t example = 0; example < 300; example++) {
            place_scene(&s, example, have);
            if (s.placed.rows.draws[0].more[3] < 0.5)
                continue; /* the golden has positive signs */
            pictures++;
            for (int i = 0; i < BOXES; i++) {
                const float *box = s.boxes + 4 * i;

                if (is_same(box, have, was))
                    continue;
                if (!is_same(box, have, want))
                    fail_msg("%s: box %d of example %u is neither", name, i, example);
                changed++;
            }
            for (int i = 0; i < BYTES; i++) {
                bool inside = false;

                for (int k = 0; k < BOXES; k++)
                    inside |= in_box(s.boxes + 4 * k, i / 3 / WIDTH, i / 3 % WIDTH);
                assert_true(inside || have[i] == was[i]);
            }
            assert_memory_equal(s.out.boxes, s.boxes, sizeof s.boxes);
        }
        if (!(fabs((double)changed - pictures) < 4 * sqrt(BOXES * pictures * 2 / 9.0)))
            fail_msg("%s: %d boxes of %d pictures", name, changed, pictures);
        close_scene(&s);
    }
    cJSON_Delete(all);
}

/* ---- what is cut out ------------------------------------------------------------------------- */

/* The rectangle of grey pixels; the picture has no pixel with three values of 128. */
static bool find_cut(const int *have, const uint8_t *was, int out[4])
{
    out[0] = HEIGHT, out[1] = WIDTH, out[2] = out[3] = 0;
    for (int i = 0; i < BYTES; i += 3) {
        const int y = i / 3 / WIDTH, x = i / 3 % WIDTH;

        if (have[i] != 128 || have[i + 1] != 128 || have[i + 2] != 128) {
            assert_true(have[i] == was[i] && have[i + 1] == was[i + 1]);
            continue;
        }
        out[0] = y < out[0] ? y : out[0], out[1] = x < out[1] ? x : out[1];
        out[2] = y + 1 > out[2] ? y + 1 : out[2], out[3] = x + 1 > out[3] ? x + 1 : out[3];
    }
    for (int y = out[0]; y < out[2]; y++)
        for (int x = out[1]; x < out[3]; x++)
            assert_int_equal(have[(y * WIDTH + x) * 3], 128);
    return out[2] > 0;
}

static void cut_out(void **state)
{
    static int have[BYTES];
    cJSON *all = golden_file("autoaugment.json");
    int corners = 0, cut[4];
    struct scene s;

    (void)state;
    open_step(&s, "Cutout", 1, cJSON_GetObjectItem(all, "boxes")); /* 20 x 20 pixels */
    for (uint32_t i = 0; i < MANY; i++) {
        place_scene(&s, i, have);
        assert_true(find_cut(have, s.pixels, cut));
        for (int k = 0; k < 2; k++) {
            const int side = k ? WIDTH : HEIGHT, length = cut[2 + k] - cut[k];

            assert_true(length <= 20 && length >= 10);
            assert_true(length == 20 || cut[k] == 0 || cut[2 + k] == side);
        }
        corners += cut[0] == 0 && cut[1] == 0 && cut[2] <= 15 && cut[3] <= 16;
    }
    /* The centre is one of 6 x 7 pixels of 30 x 32. */
    assert_true(fabs(corners - MANY * 42 / 960.0) < 4 * sqrt(MANY * 42 / 960.0));
    close_scene(&s);
    open_step(&s, "BBox_Cutout", 8, cJSON_GetObjectItem(all, "boxes"));
    int chosen[BOXES] = { 0 };
    for (uint32_t i = 0; i < MANY; i++) {
        int boxes = 0;

        place_scene(&s, i, have);
        assert_true(find_cut(have, s.pixels, cut));
        for (int k = 0; k < BOXES; k++) {
            const float *b = s.boxes + 4 * k;
            const int height = (int)(HEIGHT * b[2]) - (int)(HEIGHT * b[0]) + 1;
            const int width = (int)(WIDTH * b[3]) - (int)(WIDTH * b[1]) + 1;
            const int rows = (int)(0.6 * height / 2), columns = (int)(0.6 * width / 2);
            const int y = cut[0] ? cut[0] + rows : cut[2] - rows;
            const int x = cut[1] ? cut[1] + columns : cut[3] - columns;
            const bool fits = (cut[2] - cut[0] == 2 * rows || !cut[0] || cut[2] == HEIGHT) &&
                              (cut[3] - cut[1] == 2 * columns || !cut[1] || cut[3] == WIDTH);

            boxes += fits && in_box(b, y, x);
            chosen[k] += fits && in_box(b, y, x);
        }
        assert_true(boxes >= 1);
    }
    for (int k = 0; k < BOXES; k++)
        assert_true(chosen[k] > MANY / 4);
    close_scene(&s);
    open_step(&s, "Cutout_Only_BBoxes", 1, cJSON_GetObjectItem(all, "boxes"));
    int grey = 0;
    for (uint32_t i = 0; i < 300; i++) {
        place_scene(&s, i, have);
        for (int k = 0; k < BYTES; k++) {
            bool inside = false;

            for (int b = 0; b < BOXES; b++)
                inside |= in_box(s.boxes + 4 * b, k / 3 / WIDTH, k / 3 % WIDTH);
            assert_true(have[k] == s.pixels[k] || (inside && have[k] == 128));
            grey += have[k] != s.pixels[k];
        }
    }
    /* A third of the boxes have up to 10 x 10 grey pixels, at least a quarter of them. */
    assert_in_range(grey, 300 * 3 * 25, 300 * 3 * 100 * 2);
    close_scene(&s);
    cJSON_Delete(all);
}

/* ---- choices --------------------------------------------------------------------------------- */

/* Sub-policies are chosen alike often, operations by their probability, and signs by halves; the
 * same example gives the same bits. */
static void choices(void **state)
{
    static int have[BYTES], again[BYTES];
    cJSON *all = golden_file("autoaugment.json");
    int chosen[3] = { 0 }, moved = 0, left = 0;
    struct scene s;

    (void)state;
    open_scene(&s, "\"policy\": [[[\"TranslateX_BBox\", 0.3, 1]], [[\"Solarize\", 1, 0]],"
                   " [[\"Equalize\", 0, 3], [\"Color\", 0, 3], [\"TranslateY_BBox\", 1, 1]]]",
               cJSON_GetObjectItem(all, "boxes"));
    for (uint32_t i = 0; i < MANY; i++) {
        const struct pm_draws *d = s.placed.rows.draws;

        place_scene(&s, i, have);
        place_scene(&s, i, again);
        assert_memory_equal(have, again, sizeof have);
        chosen[d->which]++;
        const struct pm_geometry *g = &s.placed.geometry;
        assert_int_equal(g->count, d->which == 2 || (d->which == 0 && d->more[0] < 0.3));
        if (d->which == 0 && g->count) {
            moved++;
            left += g->move[0].warp[2] > 0;
        }
    }
    for (int k = 0; k < 3; k++)
        assert_true(fabs(chosen[k] - MANY / 3.0) < 4 * sqrt(MANY * 2 / 9.0));
    assert_true(fabs(moved - MANY * 0.1) < 4 * sqrt(MANY * 0.09));
    assert_true(fabs(left - moved / 2.0) < 4 * sqrt(moved / 4.0));
    close_scene(&s);
    cJSON_Delete(all);
}

/* A box that leaves the picture becomes a strip at its border; min_visible can drop it. */
static void lost_boxes(void **state)
{
    static int have[BYTES];
    cJSON *all = golden_file("autoaugment.json");
    struct scene s;

    (void)state;
    open_step(&s, "TranslateY_BBox", 2, cJSON_GetObjectItem(all, "boxes")); /* 50 rows */
    place_positive(&s, have);
    for (int i = 0; i < BOXES; i++) {
        assert_true(s.out.boxes[4 * i] == 0 && s.out.boxes[4 * i + 2] == 0.05f);
        assert_true(isnan(s.out.keypoints[2 * i]));
    }
    for (int i = 0; i < BYTES; i++)
        assert_int_equal(have[i], 128);
    close_scene(&s);
    cJSON_Delete(all);
}

/* Every published policy makes whole numbers for every picture, also without objects. */
static void published(void **state)
{
    static const struct {
        const char *name;
        int subs;
    } policies[] = { { "v0", 5 }, { "v1", 20 }, { "v2", 15 }, { "v3", 15 }, { "test", 1 } };
    static int have[BYTES];
    cJSON *all = golden_file("autoaugment.json");

    (void)state;
    for (size_t k = 0; k < PM_COUNT(policies); k++) {
        char options[40];
        int most = 0;
        struct scene s;

        snprintf(options, sizeof options, "\"policy_name\": \"%s\"", policies[k].name);
        open_scene(&s, options, cJSON_GetObjectItem(all, "boxes"));
        for (uint32_t i = 0; i < 400; i++) {
            s.sample.objects = i % 4 ? BOXES : 0;
            place_scene(&s, i, have);
            assert_int_equal(s.out.objects, s.sample.objects);
            for (size_t b = 0; b < s.out.objects; b++)
                for (int n = 0; n < 2; n++)
                    assert_true(s.out.boxes[4 * b + (size_t)n] >= 0 &&
                                s.out.boxes[4 * b + 2 + (size_t)n] <= 1 &&
                                s.out.boxes[4 * b + 2 + (size_t)n] >
                                    s.out.boxes[4 * b + (size_t)n]);
            const int which = s.placed.rows.draws[0].which;
            most = which > most ? which : most;
        }
        assert_int_equal(most + 1, policies[k].subs);
        close_scene(&s);
    }
    cJSON_Delete(all);
}

static void refuse(const char *policy, const char *message)
{
    char list[200];

    snprintf(list, sizeof list, "[{\"name\": \"autoaugment_image\", \"policy\": %s}]", policy);
    refuse_list(list, 0, message);
}

static void refusals(void **state)
{
    (void)state;
    refuse("[]", "augment.0.policy: a list of 1 to 64 sub-policies");
    refuse("[[]]", "policy.0: a list of 1 to 3 operations");
    refuse("[[[\"Color\", 1, 3]], [[\"Colour\", 1, 3]]]", "policy.1.0: [name, probability 0..1");
    refuse("[[[\"Color\", 1.5, 3]]]", "policy.0.0:");
    refuse("[[[\"Color\", 1, 11]]]", "level 0..10");
    refuse("[[[\"Color\", 1, 0.5]]]", "such as [\"Rotate_BBox\", 0.6, 10]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_pictures), cmocka_unit_test(inside_boxes),
        cmocka_unit_test(cut_out),        cmocka_unit_test(choices),
        cmocka_unit_test(lost_boxes),     cmocka_unit_test(published),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
