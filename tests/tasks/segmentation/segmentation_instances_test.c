/* The segmentation task with instance maps: fields, targets framed like the classes, the map for
 * evaluation, and refused records. */
#include <pumice/task.h>

#include "tasks/task_fields.h"
#include "data/instance_targets.h"
#include "tasks/segmentation/segmentation_setup.h"

enum { SIZE = 33, CLASSES = 4, PIXELS = SIZE * SIZE };
static const int things[] = { 1, 3 };

static struct pm_task setup_of(struct pm_arena *a, int mode)
{
    struct pm_task s = segmentation_setup(a, SIZE, SIZE, CLASSES);

    s.pixels.instance = (struct pm_instances){
        .on = true, .mode = mode, .things = { 2, things }, .label_divisor = 1000, .small_area = 40,
        .small_weight = 3,
    };
    return s;
}

/* ---- records ----------------------------------------------------------------------------- */

struct picture {
    int height, width, divisor; /* divisor 0: omitted */
    uint8_t labels[PIXELS];
    uint16_t instances[PIXELS];
};

/* Adds a grey picture of 16 bits. */
static void add_deep(struct pm_example_builder *b, const char *key, const struct picture *p)
{
    add_map(b, key, p->height, p->width, 16, p->instances);
}

enum has { HAS_NONE, HAS_SMALLER, HAS_RUBBISH, HAS_ALL };
static int make_as(const struct pm_task *s, bool train, const struct picture *p, enum has has,
                   uint64_t step, void *const *out)
{
    struct pm_example_builder *b = pm_example_builder_create();
    uint8_t *bytes = NULL, pixels[PIXELS * 3];
    struct picture smaller = *p;
    size_t size;
    const int64_t divisor = p->divisor;

    for (int i = 0; i < PIXELS * 3; i++)
        pixels[i] = (uint8_t)(i * 37 + 11);
    smaller.height--;
    add_picture(b, "image/encoded", p->height, p->width, 3, pixels);
    add_picture(b, "image/segmentation/class/encoded", p->height, p->width, 1, p->labels);
    if (has >= HAS_ALL)
        add_deep(b, "image/segmentation/instance/encoded", p);
    else if (has == HAS_SMALLER)
        add_deep(b, "image/segmentation/instance/encoded", &smaller);
    else if (has == HAS_RUBBISH)
        pm_example_add_bytes(b, "image/segmentation/instance/encoded", "GIF89a", 6);
    if (divisor)
        pm_example_add_ints(b, "image/segmentation/instance/divisor", &divisor, 1);
    pm_example_serialise(b, &bytes, &size);
    pm_example_builder_destroy(&b);
    struct pm_sampler sampler = { .task = s, .train = train };
    const struct pm_loader_record r = { .bytes = bytes, .size = size, .seed = 7, .step = step,
                                        .where = "a.tfrecord record 5",
                                        .frame = frame_of(&s->facts, train) };
    const int err = pm_task_find("segmentation")->make(&sampler, &r, out);
    pm_free(bytes);
    return err;
}

/* Draws boxes of things, a crowd and ignored pixels on a background of classes 0 and 2. */
static void scene(struct picture *p, int height, int width, int divisor)
{
    const int d = divisor ? divisor : 1000;

    *p = (struct picture){ .height = height, .width = width, .divisor = divisor };
    for (int i = 0; i < height * width; i++) {
        const int y = i / width, x = i % width;
        int label = y < height / 3 ? 2 : 0, n = -1;
        if (y >= 4 && y < 12 && x >= 3 && x < 9)
            label = 1, n = 1;
        else if (y >= 8 && y < 20 && x >= 12 && x < 15)
            label = 3, n = 200;
        else if (y >= 15 && x < 6)
            label = 3, n = 0;
        else if (y >= 14 && x >= 20)
            label = 255;
        p->labels[i] = (uint8_t)label;
        p->instances[i] = (uint16_t)(n < 0 ? 0 : label * d + n);
    }
}

/* ---- tests ------------------------------------------------------------------------------- */

struct batch {
    float image[PIXELS * 3], center[PIXELS], center_weight[PIXELS], offset[2 * PIXELS];
    float offset_weight[2 * PIXELS], semantic_weight[PIXELS];
    int32_t labels[PIXELS];
};

static void fields(void **state)
{
    static const struct { const char *name; int elements; } want[] = {
        { "images", 3 }, { "labels", 1 }, { "center", 1 }, { "center_weight", 1 }, { "offset", 2 },
        { "offset_weight", 2 }, { "semantic_weight", 1 },
    };
    const struct pm_task_row *task = pm_task_find("segmentation");
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a, PM_INSTANCE_REFERENCE);
    struct pm_field field[8];

    (void)state;
    s.facts.eval_height = 41;
    assert_int_equal(fields_of(task, &s, true, frame_of(&s.facts, true), field), 7);
    for (int i = 0; i < 7; i++) {
        assert_string_equal(field[i].name, want[i].name);
        assert_int_equal(pm_shape_count(field[i].shape), want[i].elements * PIXELS);
        assert_int_equal(field[i].type, i == 1 ? PM_I32 : PM_F32);
    }
    assert_int_equal(fields_of(task, &s, false, frame_of(&s.facts, false), field), 3);
    assert_string_equal(field[2].name, "instances");
    assert_int_equal(field[2].type, PM_I32);
    assert_int_equal(pm_shape_count(field[2].shape), 41 * SIZE);
    s.pixels.instance.on = false;
    assert_int_equal(fields_of(task, &s, true, frame_of(&s.facts, true), field), 2);
    assert_int_equal(fields_of(task, &s, false, frame_of(&s.facts, false), field), 2);
    pm_arena_destroy(&a);
}

/* With any augmentation: where the label map and the instance map hold the same, the targets are
 * those of the framed classes alone. */
static void training(int mode, int divisor)
{
    static struct batch b, w;
    static struct picture p;
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of(a, mode);
    struct pm_instance_options o = pm_instance_options_of(mode);
    int32_t instances[PIXELS];
    double sum = 0;

    o.num_classes = CLASSES, o.ignore_label = 255, o.small_area = 40;
    o.things = (struct pm_ints){ 2, things };
    scene(&p, 24, 29, divisor);
    for (int i = 0; i < 24 * 29; i++) /* an instance for each class */
        p.instances[i] = (uint16_t)((p.labels[i] & 1) && p.labels[i] != 255
                                        ? p.labels[i] * (divisor ? divisor : 1000) + 7 : 0);
    for (uint64_t step = 0; step < 12; step++) {
        memset(&b, 0xff, sizeof b);
        assert_int_equal(make_as(&s, true, &p, HAS_ALL, step, (void *[]){
            b.image, b.labels, b.center, b.center_weight, b.offset, b.offset_weight,
            b.semantic_weight }), PM_OK);
        for (int i = 0; i < PIXELS; i++)
            instances[i] = (b.labels[i] & 1) && b.labels[i] != 255 ? b.labels[i] * 1000 + 7 : 0;
        pm_instance_targets(&o, b.labels, instances, SIZE, SIZE, &(struct pm_instance_target){
            w.center, w.center_weight, w.offset, w.offset_weight, w.semantic_weight });
        assert_memory_equal(b.center, w.center, sizeof b.center);
        assert_memory_equal(b.center_weight, w.center_weight, sizeof b.center);
        assert_memory_equal(b.offset, w.offset, sizeof b.offset);
        assert_memory_equal(b.offset_weight, w.offset_weight, sizeof b.offset);
        assert_memory_equal(b.semantic_weight, w.semantic_weight, sizeof b.semantic_weight);
        for (int i = 0; i < PIXELS; i++)
            sum += (double)b.center[i];
    }
    assert_true(sum > 12); /* some things were visible */
    pm_arena_destroy(&a);
}

static void training_fields(void **state)
{
    (void)state;
    training(PM_INSTANCE_REFERENCE, 0);
    training(PM_INSTANCE_REFERENCE, 256);
    training(PM_INSTANCE_SEED4, 0);
}

static void evaluation_field(void **state)
{
    static struct picture p;
    static float image[PIXELS * 3];
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of(a, PM_INSTANCE_REFERENCE);
    int32_t labels[PIXELS], instances[PIXELS];

    (void)state;
    for (int divisor = 0; divisor <= 256; divisor += 256) {
        scene(&p, 24, 29, divisor);
        memset(instances, 0x7f, sizeof instances);
        assert_int_equal(make_as(&s, false, &p, HAS_ALL, 0, (void *[]){ image, labels, instances }),
                         PM_OK);
        for (int y = 0; y < SIZE; y++)
            for (int x = 0; x < SIZE; x++) {
                const bool inside = y < 24 && x < 29;
                const int v = inside ? p.instances[y * 29 + x] : -1;
                const int want = inside && divisor ? v / 256 * 1000 + v % 256 : v;
                assert_int_equal(instances[y * SIZE + x], want);
            }
        assert_int_equal(instances[9 * SIZE + 13], 3200);
        assert_int_equal(instances[20 * SIZE + 2], 3000);
    }
    pm_arena_destroy(&a);
}

static void refuses(const struct picture *p, enum has has, int code, const char *const *texts)
{
    static struct batch b;
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of(a, PM_INSTANCE_REFERENCE);
    int32_t instances[PIXELS];

    for (int train = 0; train < 2; train++) {
        void *const eval_out[] = { b.image, b.labels, instances };
        void *const out[] = { b.image, b.labels, b.center, b.center_weight, b.offset,
                              b.offset_weight, b.semantic_weight };
        assert_int_equal(make_as(&s, train, p, has, 0, train ? out : eval_out), code);
        assert_non_null(strstr(pm_error_text(), "a.tfrecord record 5"));
        for (int i = 0; texts[i]; i++)
            if (!strstr(pm_error_text(), texts[i]))
                fail_msg("\"%s\" is not in: %s", texts[i], pm_error_text());
    }
    pm_arena_destroy(&a);
}
#define REFUSES(p, has, code, ...) refuses(p, has, code, (const char *const[]){ __VA_ARGS__, NULL })

static void what_is_refused(void **state)
{
    static struct picture p;

    (void)state;
    scene(&p, 24, 29, 0);
    REFUSES(&p, HAS_NONE, PM_EDATA, "image/segmentation/instance/encoded", "remove the data folder",
            "model.instance");
    REFUSES(&p, HAS_SMALLER, PM_EDATA, "the label map is 24 x 29", "the instance map 23 x 29");
    REFUSES(&p, HAS_RUBBISH, PM_ECORRUPT, "is not a PNG");
    p.instances[5 * 29 + 4] = 3004;
    REFUSES(&p, HAS_ALL, PM_EDATA, "3004 at row 5, column 4 is of class 3", "label is class 1");
    scene(&p, 24, 29, 1);
    REFUSES(&p, HAS_ALL, PM_EDATA, "instance/divisor", "1 is outside 2..");
}

/* ---- records of mode seed4 --------------------------------------------------------------- */

enum part { CENTER = 1, OFFSETS = 2, IDS = 4, WRONG_SIZE = 8 };

/* Heat h(y, x), offsets of 256 above it and 513, and the numbers of p->instances in Cityscapes'
 * form. */
static int heat_at(int y, int x)
{
    return (37 * y + 11 * x) & 255;
}

static int make_seed4(const struct pm_task *s, bool train, const struct picture *p, int parts,
                      uint64_t step, void *const *out)
{
    struct pm_example_builder *b = pm_example_builder_create();
    static uint8_t heat[PIXELS], y[PIXELS * 3], x[PIXELS * 3], pixels[PIXELS * 3], *bytes;
    const int height = p->height, width = p->width;
    size_t size;

    for (int i = 0; i < height * width; i++) {
        const int h = heat_at(i / width, i % width);
        heat[i] = (uint8_t)h;
        memcpy(y + 3 * i, (uint8_t[3]){ (uint8_t)h, 1, 77 }, 3);
        memcpy(x + 3 * i, (uint8_t[3]){ 1, 2, 99 }, 3);
    }
    add_picture(b, "image/encoded", height, width, 3, pixels);
    add_picture(b, "image/segmentation/class/encoded", height, width, 1, p->labels);
    if (parts & CENTER)
        add_picture(b, "image/center/class/encoded", parts & WRONG_SIZE ? height - 1 : height,
                    width, 1, heat);
    if (parts & OFFSETS) {
        add_picture(b, "image/offsetx/class/encoded", height, width, 3, x);
        add_picture(b, "image/offsety/class/encoded", height, width, 3, y);
    }
    if (parts & IDS)
        add_deep(b, "image/instance_ids_data/class/encoded", p);
    pm_example_serialise(b, &bytes, &size);
    pm_example_builder_destroy(&b);
    struct pm_sampler sampler = { .task = s, .train = train };
    const struct pm_loader_record r = { .bytes = bytes, .size = size, .seed = 7, .step = step,
                                        .where = "a.tfrecord record 5",
                                        .frame = frame_of(&s->facts, train) };
    const int err = pm_task_find("segmentation")->make(&sampler, &r, out);
    pm_free(bytes);
    return err;
}

/* Numbers in Cityscapes' form; the classes show whether the picture was flipped. */
static void seed4_scene(struct picture *p)
{
    *p = (struct picture){ .height = 24, .width = 29 };
    for (int i = 0; i < 24 * 29; i++) {
        const int x = i % 29;
        p->labels[i] = (uint8_t)(x < 6 ? 3 : x < 10 ? 1 : x < 14 ? 2 : 0);
        p->instances[i] = (uint16_t)(x < 3 ? 26000 : x < 6 ? 26 : x < 10 ? 24016 : x < 14 ? 7 : 3);
    }
}

static void seed4_pictures(void **state)
{
    static struct batch b;
    static struct picture p;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a, PM_INSTANCE_SEED4);
    void *cfg = pm_arena_alloc(a, s.facts.preprocessing->cfg_size + 1);
    int flips = 0;

    (void)state;
    assert_int_equal(
        pm_opts_parse_text(s.facts.preprocessing->opts, "min_scale=1 max_scale=1", cfg, a, "x"),
        PM_OK);
    s.facts.preprocessing_cfg = cfg;
    seed4_scene(&p);
    for (uint64_t step = 0; step < 8; step++) {
        memset(&b, 0xff, sizeof b);
        assert_int_equal(make_seed4(&s, true, &p, CENTER | OFFSETS | IDS, step, (void *[]){
            b.image, b.labels, b.center, b.center_weight, b.offset, b.offset_weight,
            b.semantic_weight }), PM_OK);
        const bool flip = b.labels[SIZE - 1] == 3;
        flips += flip;
        for (int i = 0; i < PIXELS; i++) {
            const int y = i / SIZE, x = flip ? SIZE - 1 - i % SIZE : i % SIZE;
            const bool inside = y < 24 && x < 29;
            const float h = inside ? (float)heat_at(y, x) : 0;
            assert_true(b.center[i] == h / 2);
            assert_true(b.offset[2 * i] == (inside ? h + 256 : 0));
            assert_true(b.offset[2 * i + 1] == (inside ? 513 : 0));
            assert_true(b.center_weight[i] == 1 && b.semantic_weight[i] == 1);
            assert_true(b.offset_weight[2 * i] == 1 && b.offset_weight[2 * i + 1] == 1);
        }
    }
    assert_true(flips > 0 && flips < 8);
    /* After scaling, lengths stay the same, except towards the padding. */
    s.facts.preprocessing_cfg = setup_of(a, PM_INSTANCE_SEED4).facts.preprocessing_cfg;
    for (uint64_t step = 0; step < 8; step++) {
        assert_int_equal(make_seed4(&s, true, &p, CENTER | OFFSETS, step, (void *[]){
            b.image, b.labels, b.center, b.center_weight, b.offset, b.offset_weight,
            b.semantic_weight }), PM_OK);
        for (int i = 0; i < PIXELS; i++)
            assert_true(fabsf(b.offset[2 * i + 1] - (b.labels[i] == 255 ? 0 : 513)) < 1e-3f);
    }
    pm_arena_destroy(&a);
}

/* Evaluation uses the numbers, and so does training in the other mode. */
static void seed4_numbers(void **state)
{
    static struct batch b, w;
    static struct picture p, same;
    struct pm_arena *a = pm_arena_create();
    const struct pm_task seed4 = setup_of(a, PM_INSTANCE_SEED4);
    const struct pm_task reference = setup_of(a, PM_INSTANCE_REFERENCE);
    int32_t instances[PIXELS];

    (void)state;
    seed4_scene(&p);
    same = p;
    assert_int_equal(make_seed4(&seed4, false, &p, CENTER | OFFSETS | IDS, 0, (void *[]){
        b.image, b.labels, instances }), PM_OK);
    for (int y = 0; y < 24; y++)
        for (int x = 0; x < 29; x++) {
            const int want = x < 3 ? 3001 : x < 6 ? 3000 : x < 10 ? 1017 : 0;
            assert_int_equal(instances[y * SIZE + x], want);
            same.instances[y * 29 + x] = (uint16_t)want;
        }
    void *const out[] = { b.image, b.labels, b.center, b.center_weight, b.offset, b.offset_weight,
                          b.semantic_weight };
    assert_int_equal(make_seed4(&reference, true, &p, CENTER | OFFSETS | IDS, 3, out), PM_OK);
    assert_int_equal(make_as(&reference, true, &same, HAS_ALL, 3, (void *[]){
        w.image, w.labels, w.center, w.center_weight, w.offset, w.offset_weight,
        w.semantic_weight }), PM_OK);
    assert_memory_equal(b.center, w.center, sizeof b.center);
    assert_memory_equal(b.offset, w.offset, sizeof b.offset);
    /* Missing or mismatching parts of a record. */
    assert_int_equal(make_seed4(&reference, true, &p, CENTER | OFFSETS, 3, out), PM_EDATA);
    assert_non_null(strstr(pm_error_text(),
                           "record 5: the record has no image/instance_ids_data/class/encoded"));
    assert_int_equal(make_seed4(&seed4, true, &p, CENTER | IDS, 3, out), PM_EDATA);
    assert_non_null(
        strstr(pm_error_text(), "record 5: the record has no image/offsety/class/encoded"));
    assert_int_equal(make_seed4(&seed4, true, &p, CENTER | OFFSETS | WRONG_SIZE, 3, out), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "image/center/class/encoded is 23 x 29"));
    p.instances[29] = 26999;
    assert_int_equal(make_seed4(&seed4, true, &p, IDS, 3, out), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "26999 of class 3 at row 1, column 0"));
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields),
        cmocka_unit_test(training_fields),
        cmocka_unit_test(evaluation_field),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(seed4_pictures),
        cmocka_unit_test(seed4_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
