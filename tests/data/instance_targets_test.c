/* Targets of instances compared with a reference in double precision that compares every pixel
 * with every other, and with results of Panoptic-DeepLab's own program. */
#include "preprocessing_common.h"
#include "data/instance_targets.h"

enum { HEIGHT = 70, WIDTH = 90, CLASSES = 5, IGNORED = 255 };

/* Classes 1, 3 and 4 are things; with things_of_0 class 0 is a thing, too. */
static const int some_things[] = { 1, 3, 4 };

struct maps {
    int height, width;
    int32_t labels[HEIGHT * WIDTH], instances[HEIGHT * WIDTH];
};

static struct pm_instance_options options(int mode)
{
    struct pm_instance_options o = pm_instance_options_of(mode);
    o.num_classes = CLASSES;
    o.ignore_label = IGNORED;
    o.things = (struct pm_ints){ PM_COUNT(some_things), some_things };
    return o;
}

static void plain(struct maps *m, int height, int width)
{
    m->height = height, m->width = width;
    for (int i = 0; i < height * width; i++)
        m->labels[i] = m->instances[i] = 0;
}

/* Draws a box of the class; n -1: a crowd. */
static void box(struct maps *m, int y, int x, int height, int width, int label, int n)
{
    for (int r = y; r < y + height; r++)
        for (int c = x; c < x + width; c++)
            if (r >= 0 && r < m->height && c >= 0 && c < m->width) {
                m->labels[r * m->width + c] = label;
                m->instances[r * m->width + c] =
                    label == IGNORED ? 0 : label * 1000 + (n < 0 ? 0 : n);
            }
}

/* ---- the reference --------------------------------------------------------------------------- */

static bool is_thing(int label)
{
    return label == 1 || label == 3 || label == 4;
}

/* A number for the segment of pixel i, 1000 * class for crowds; -1 for no segment. */
static int key_at(const struct maps *m, int i)
{
    const int label = m->labels[i], n = m->instances[i] - 1000 * label;
    return is_thing(label) ? 1000 * label + (n >= 1 && n <= 999 ? n : 0) : -1;
}

struct sum {
    double count, y, x;
};

static struct sum mean_of(const struct maps *m, int key)
{
    struct sum s = { 0, 0, 0 };
    for (int i = 0; i < m->height * m->width; i++)
        if (key_at(m, i) == key)
            s.count++, s.y += i / m->width, s.x += i % m->width;
    s.y /= s.count;
    s.x /= s.count;
    return s;
}

struct wanted {
    double center, center_weight, offset[2], offset_weight, semantic_weight;
};

/* The targets of one pixel, except the centre. */
static struct wanted want_at(const struct maps *m, int i, bool seed4, double small_area,
                             double small_weight)
{
    struct wanted w = { 0, 1, { 0, 0 }, 0, 1 };
    const int key = key_at(m, i), label = m->labels[i];
    const bool crowd = key >= 0 && key % 1000 == 0;

    if (label == IGNORED || crowd)
        w.center_weight = 0;
    if (key >= 0 && !(crowd && seed4)) {
        const struct sum s = mean_of(m, key);
        w.offset[0] = s.y - i / m->width;
        w.offset[1] = s.x - i % m->width;
        w.offset_weight = !crowd;
        w.semantic_weight = crowd ? 0 : s.count < small_area ? small_weight : 1;
    }
    if (seed4) {
        w.center_weight = w.offset_weight = w.semantic_weight = 1;
        for (int k = 0; k < 2; k++)
            w.offset[k] = rint(fabs(w.offset[k]));
    }
    return w;
}

static double gauss(const struct sum *s, int y, int x, double sigma)
{
    const double dy = y - floor(s->y), dx = x - floor(s->x);
    if (fabs(dy) > 3 * sigma + 1 || fabs(dx) > 3 * sigma + 1)
        return 0;
    return exp(-(dy * dy + dx * dx) / (2 * sigma * sigma));
}

static void want_centers(const struct maps *m, const struct pm_instance_options *o, double *out)
{
    const bool seed4 = o->mode == PM_INSTANCE_SEED4;
    bool seen[CLASSES * 1000] = { false };

    for (int i = 0; i < m->height * m->width; i++)
        out[i] = 0;
    for (int i = 0; i < m->height * m->width; i++) {
        const int key = key_at(m, i);
        if (key < 0 || seen[key] || (seed4 && key % 1000 == 0))
            continue;
        seen[key] = true;
        const struct sum s = mean_of(m, key);
        for (int k = 0; k < m->height * m->width; k++)
            out[k] = fmax(out[k], gauss(&s, k / m->width, k % m->width,
                                        o->sigma ? o->sigma : seed4 ? 5 : 8));
    }
    for (int i = 0; i < m->height * m->width && seed4; i++)
        out[i] = rint(255 * out[i]) / 2;
}

/* ---- the comparison -------------------------------------------------------------------------- */

struct made {
    float center[HEIGHT * WIDTH], center_weight[HEIGHT * WIDTH], offset[2 * HEIGHT * WIDTH];
    float offset_weight[2 * HEIGHT * WIDTH], semantic_weight[HEIGHT * WIDTH];
};

static void make(const struct maps *m, const struct pm_instance_options *o, struct made *out)
{
    const struct pm_instance_target to = { out->center, out->center_weight, out->offset,
                                           out->offset_weight, out->semantic_weight };
    memset(out, 0xff, sizeof *out); /* NaN */
    pm_instance_targets(o, m->labels, m->instances, m->height, m->width, &to);
}

static void near(const char *what, int i, double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s, element %d: %.9g, not %.9g", what, i, got, want);
}

static void compare(const struct maps *m, const struct pm_instance_options *o)
{
    static struct made got;
    static double centers[HEIGHT * WIDTH];
    /* Precision of float32 for numbers up to 255 and places up to 90. */
    const double heat = o->mode == PM_INSTANCE_SEED4 ? 0.5 : 1e-7, place = 1e-5;

    make(m, o, &got);
    want_centers(m, o, centers);
    for (int i = 0; i < m->height * m->width; i++) {
        const struct wanted w = want_at(m, i, o->mode == PM_INSTANCE_SEED4, o->small_area,
                                        o->small_weight);
        near("center", i, got.center[i], centers[i], heat);
        near("center_weight", i, got.center_weight[i], w.center_weight, 0);
        for (int k = 0; k < 2; k++) {
            near("offset", 2 * i + k, got.offset[2 * i + k], w.offset[k], place);
            near("offset_weight", 2 * i + k, got.offset_weight[2 * i + k], w.offset_weight, 0);
        }
        near("semantic_weight", i, got.semantic_weight[i], w.semantic_weight, 0);
    }
}

static void both_modes(const struct maps *m)
{
    const struct pm_instance_options reference = options(PM_INSTANCE_REFERENCE);
    const struct pm_instance_options seed4 = options(PM_INSTANCE_SEED4);
    compare(m, &reference);
    compare(m, &seed4);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static struct maps m;

/* One instance in the middle: a square of 51 x 51 around a 1. */
static void square(void **state)
{
    static struct made got;
    const struct pm_instance_options o = options(PM_INSTANCE_REFERENCE);
    int count = 0, ones = 0;

    (void)state;
    plain(&m, HEIGHT, WIDTH);
    box(&m, 34, 44, 1, 1, 3, 7);
    make(&m, &o, &got);
    for (int i = 0; i < HEIGHT * WIDTH; i++) {
        const int y = i / WIDTH - 34, x = i % WIDTH - 44;
        const bool inside = y >= -25 && y <= 25 && x >= -25 && x <= 25;
        assert_true(inside == (got.center[i] > 0));
        count += inside;
        ones += got.center[i] == 1;
        near("center", i, got.center[i], inside ? exp(-(y * y + x * x) / 128.0) : 0, 1e-7);
    }
    assert_int_equal(count, 51 * 51);
    assert_int_equal(ones, 1);
    assert_true(got.center[34 * WIDTH + 44] == 1);
    assert_true(got.offset[2 * (34 * WIDTH + 44)] == 0);
    assert_true(got.semantic_weight[34 * WIDTH + 44] == 3);
    both_modes(&m);
}

/* The sum of overlapping squares is never above 1, and each has its peak. */
static void overlap(void **state)
{
    static struct made got;
    const struct pm_instance_options o = options(PM_INSTANCE_REFERENCE);

    (void)state;
    plain(&m, HEIGHT, WIDTH);
    for (int i = 0; i < 6; i++)
        box(&m, 30, 40 + 2 * i, 2, 2, 1, i + 1);
    make(&m, &o, &got);
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        assert_true(got.center[i] >= 0 && got.center[i] <= 1);
    for (int i = 0; i < 6; i++) /* the mean, 30.5, is truncated */
        assert_true(got.center[30 * WIDTH + 40 + 2 * i] == 1);
    near("offset", 0, got.offset[2 * (31 * WIDTH + 40)], -0.5, 0);
    near("offset", 1, got.offset[2 * (31 * WIDTH + 40) + 1], 0.5, 0);
    both_modes(&m);
}

/* Boxes across every border and corner, as after a crop; boxes of two parts; a box inside
 * another. */
static void borders(void **state)
{
    (void)state;
    plain(&m, HEIGHT, WIDTH);
    box(&m, -5, -9, 12, 20, 1, 1);
    box(&m, -3, WIDTH - 4, 9, 30, 3, 1);
    box(&m, HEIGHT - 1, 30, 8, 1, 4, 999);
    box(&m, HEIGHT - 6, WIDTH - 7, 20, 20, 4, 1);
    box(&m, 20, 0, 11, 3, 3, 2);
    box(&m, 20, 60, 30, 13, 3, 3);
    box(&m, 22, 63, 9, 9, 1, 2);
    box(&m, 40, 10, 4, 5, 1, 3);
    box(&m, 50, 30, 6, 7, 1, 3);
    both_modes(&m);
}

/* Crowds, ignored pixels over things, and instance numbers on stuff and on the pixels of another
 * class. */
static void no_instances_of_their_own(void **state)
{
    (void)state;
    plain(&m, HEIGHT, WIDTH);
    box(&m, 5, 5, 30, 20, 3, -1);
    box(&m, 40, 40, 7, 7, 3, -1);
    box(&m, 10, 10, 5, 5, 3, 4);
    box(&m, 10, 60, 20, 20, 4, 1);
    box(&m, 12, 62, 3, 3, IGNORED, 0);
    for (int x = 0; x < WIDTH; x++) {
        m.instances[65 * WIDTH + x] = 1;             /* background, class 0, which is not a thing */
        m.labels[66 * WIDTH + x] = 2;
        m.instances[66 * WIDTH + x] = 2001;          /* stuff */
        m.labels[67 * WIDTH + x] = 4;
        m.instances[67 * WIDTH + x] = 3001;          /* of another class: a crowd */
        m.labels[68 * WIDTH + x] = IGNORED;
        m.instances[68 * WIDTH + x] = 3004;
    }
    both_modes(&m);
}

static void nothing_and_everything(void **state)
{
    (void)state;
    plain(&m, HEIGHT, WIDTH);
    both_modes(&m);
    box(&m, 0, 0, HEIGHT, WIDTH, IGNORED, 0);
    both_modes(&m);
    box(&m, 0, 0, HEIGHT, WIDTH, 4, 12);
    both_modes(&m);
    plain(&m, 1, 1);
    box(&m, 0, 0, 1, 1, 1, 1);
    both_modes(&m);
    plain(&m, 1, WIDTH);
    box(&m, 0, 3, 1, 50, 1, 1);
    both_modes(&m);
}

/* All numbers of a class, with a pixel each. */
static void many(void **state)
{
    (void)state;
    plain(&m, 30, 40);
    for (int i = 0; i < 999; i++)
        box(&m, i / 40, i % 40, 1, 1, 1, i + 1);
    both_modes(&m);
    for (int i = 0; i < 30 * 40; i++) /* three pixels of each */
        box(&m, i / 40, i % 40, 1, 1, i % 2 ? 3 : 4, 1 + i / 3);
    both_modes(&m);
}

/* An area equal to the limit is not small. Options take effect. */
static void areas(void **state)
{
    static struct made got;
    struct pm_instance_options o = options(PM_INSTANCE_REFERENCE);

    (void)state;
    plain(&m, HEIGHT, WIDTH);
    box(&m, 0, 0, 64, 64, 1, 1);
    box(&m, 0, 70, 1, 5, 3, 1);
    make(&m, &o, &got);
    assert_true(got.semantic_weight[0] == 1);
    assert_true(got.semantic_weight[70] == 3);
    assert_true(got.semantic_weight[66] == 1);
    compare(&m, &o);
    m.labels[0] = 0, m.instances[0] = 0;
    make(&m, &o, &got);
    assert_true(got.semantic_weight[1] == 3);
    o.small_area = 6, o.small_weight = 2.5f, o.sigma = 2;
    compare(&m, &o);
    o.small_area = 5;
    compare(&m, &o);
}

/* Random maps. */
static void any(void **state)
{
    struct pm_rng r = pm_rng_make(5, 1, 2, 3);

    (void)state;
    for (int round = 0; round < 12; round++) {
        plain(&m, (int)pm_rng_int(&r, 1, 40), (int)pm_rng_int(&r, 1, 50));
        const int boxes = (int)pm_rng_int(&r, 0, 12);
        for (int i = 0; i < boxes; i++) {
            static const int labels[] = { 0, 1, 2, 3, 4, IGNORED };
            box(&m, (int)pm_rng_int(&r, -10, 40), (int)pm_rng_int(&r, -10, 50),
                (int)pm_rng_int(&r, 1, 20), (int)pm_rng_int(&r, 1, 20),
                labels[pm_rng_int(&r, 0, 5)], (int)pm_rng_int(&r, 0, 3) - 1);
        }
        both_modes(&m);
    }
}

/* An ignored class, such as ADE20K's 0, and a divisor of 256; class 0 as a thing. */
static void other_numbers(void **state)
{
    static const int things[] = { 0 };
    static const int32_t labels[] = { 0, 0, 0, 1, 1, 0 },
                         instances[] = { 1, 255, 0, 256, 257, 256 };
    struct pm_instance_options o = { .sigma = 1,
                                     .num_classes = 2,
                                     .divisor = 256,
                                     .ignore_label = 1,
                                     .things = { 1, things },
                                     .small_weight = 3,
                                     .small_area = 2 };
    float center[6], center_weight[6], offset[12], offset_weight[12], semantic_weight[6];
    const struct pm_instance_target out = { center, center_weight, offset, offset_weight,
                                            semantic_weight };
    static const float weights[] = { 1, 1, 0, 0, 0, 0 }, semantic[] = { 3, 3, 0, 1, 1, 0 };

    (void)state;
    pm_instance_targets(&o, labels, instances, 1, 6, &out);
    for (int i = 0; i < 6; i++) {
        assert_true(center_weight[i] == weights[i]);
        assert_true(semantic_weight[i] == semantic[i]);
    }
    assert_true(center[0] == 1 && center[1] == 1);
    assert_true(center[3] == 1); /* the crowd in columns 2 and 5 */
    near("its offset", 2, offset[5], 1.5, 0);
    assert_true(offset_weight[0] == 1 && offset_weight[4] == 0 && offset_weight[10] == 0);
}

/* ---- Panoptic-DeepLab's results -------------------------------------------------------------- */

enum { GOLDEN_PIXELS = 128 * 120 };

static double number_of(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(o, key);
    assert_true(cJSON_IsNumber(v));
    return v->valuedouble;
}

/* tests/golden/instance_targets.py describes the summary of an array. Both sides use float32 and
 * round differently. */
static void compare_summary(const cJSON *want, const char *name, const float *got, size_t count)
{
    const cJSON *o = cJSON_GetObjectItem(want, name), *dots = cJSON_GetObjectItem(o, "dots");
    const double bound = 1e-6 * number_of(o, "largest");
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (double)got[i];
    near(name, -1, sum, number_of(o, "sum"), bound);
    for (int k = 0; k < 3; k++) {
        double dot = 0;
        for (size_t i = 0; i < count; i++) {
            const uint32_t v = (uint32_t)(2654435761u * (i + 1) + 40503u * (size_t)k * (i + 7));
            dot += (double)got[i] * (v / 4294967296.0 - 0.5);
        }
        near(name, k, dot, cJSON_GetArrayItem(dots, k)->valuedouble, bound);
    }
}

static void paint_golden(const cJSON *scene, int height, int width, int32_t *labels,
                         int32_t *instances)
{
    const cJSON *b;

    for (int i = 0; i < height * width; i++)
        labels[i] = 255, instances[i] = 0;
    cJSON_ArrayForEach(b, cJSON_GetObjectItem(scene, "boxes"))
    {
        int v[6];
        for (int k = 0; k < 6; k++)
            v[k] = cJSON_GetArrayItem(b, k)->valueint;
        for (int y = v[0] < 0 ? 0 : v[0]; y < v[0] + v[2] && y < height; y++)
            for (int x = v[1] < 0 ? 0 : v[1]; x < v[1] + v[3] && x < width; x++) {
                labels[y * width + x] = v[4];
                instances[y * width + x] = v[5] < 0 ? 0 : v[4] * 1000 + v[5];
            }
    }
}

static void golden(void **state)
{
    static const int cityscapes[] = { 11, 12, 13, 14, 15, 16, 17, 18 };
    static int32_t labels[GOLDEN_PIXELS], instances[GOLDEN_PIXELS];
    static float center[GOLDEN_PIXELS], center_weight[GOLDEN_PIXELS], offset[2 * GOLDEN_PIXELS];
    static float offset_weight[2 * GOLDEN_PIXELS], semantic_weight[GOLDEN_PIXELS];
    struct pm_instance_options o = pm_instance_options_of(PM_INSTANCE_REFERENCE);
    cJSON *all = golden_file("instance_targets.json");
    const cJSON *scene;

    (void)state;
    o.num_classes = 19, o.ignore_label = 255, o.small_area = 1000;
    o.things = (struct pm_ints){ PM_COUNT(cityscapes), cityscapes };
    assert_int_equal(cJSON_GetArraySize(all), 4);
    cJSON_ArrayForEach(scene, all)
    {
        const int height = (int)number_of(scene, "height"), width = (int)number_of(scene, "width");
        const size_t n = (size_t)height * (size_t)width;
        assert_true(n <= GOLDEN_PIXELS);
        paint_golden(scene, height, width, labels, instances);
        pm_instance_targets(&o, labels, instances, height, width, &(struct pm_instance_target){
            center, center_weight, offset, offset_weight, semantic_weight });
        compare_summary(scene, "center", center, n);
        compare_summary(scene, "center_weight", center_weight, n);
        compare_summary(scene, "offset", offset, 2 * n);
        compare_summary(scene, "offset_weight", offset_weight, 2 * n);
        compare_summary(scene, "semantic_weight", semantic_weight, n);
    }
    cJSON_Delete(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(square),
        cmocka_unit_test(overlap),
        cmocka_unit_test(borders),
        cmocka_unit_test(no_instances_of_their_own),
        cmocka_unit_test(nothing_and_everything),
        cmocka_unit_test(many),
        cmocka_unit_test(areas),
        cmocka_unit_test(any),
        cmocka_unit_test(other_numbers),
        cmocka_unit_test(golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
