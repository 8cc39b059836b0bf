/* Key points in the recognition task: they go where the pixels go, the weights of a batch's
 * pictures add up to 1, and errors of control points, against formulas in double precision. */
#include "base/unit.h"

#include <cjson/cJSON.h>

#include "tasks/recognition/recognition.h"

enum { CONTROLS = 6, HEIGHT = 20, WIDTH = 60 };

static struct pm_task *made(struct pm_arena *a)
{
    struct pm_task *t = pm_arena_alloc(a, sizeof *t);
    struct pm_charset *c = pm_arena_alloc(a, sizeof *c);

    c->count = 1;
    c->letters = pm_arena_copy(a, (const uint32_t[]){ 'a' }, sizeof *c->letters);
    c->sorted = pm_arena_copy(a, (const int[]){ 0 }, sizeof *c->sorted);
    *t = (struct pm_task){ .charset = c, .steps = 1,
                           .data = { .charset = "test", .max_num_steps = 3 },
                           .model.transformer = PM_TRANSFORMER_TPS,
                           .loss.keypoint_weight = 5,
                           .transformer.num_control_points = CONTROLS };
    t->facts = (struct pm_task_facts){ .num_classes = 2, .height = 16, .width = 48 };
    return t;
}

/* ---- places -------------------------------------------------------------------------------- */

static const float corners[8] = { 6, 5, 54, 2, 3, 18, 57, 15 };

static struct pm_example *record(const float *v, size_t count, uint8_t **bytes)
{
    struct pm_example_builder *b = pm_example_builder_create();
    struct pm_example *e = NULL;
    size_t size = 0;

    pm_example_add_bytes(b, "image/transcript", "a", 1);
    if (v)
        pm_example_add_floats(b, "image/keypoints", v, count);
    pm_example_serialise(b, bytes, &size);
    assert_int_equal(pm_example_parse(*bytes, size, "own", &e), PM_OK);
    pm_example_builder_destroy(&b);
    return e;
}

/* Where a point of the picture is after the moves of a case, in shares. */
enum moves { RESIZED, MIRRORED, CUT, ENLARGED, TURNED };
static void moved(enum moves kind, double x, double y, double out[2])
{
    switch (kind) {
    case RESIZED: out[0] = x / WIDTH, out[1] = y / HEIGHT; break;
    case MIRRORED: out[0] = 1 - x / WIDTH, out[1] = y / HEIGHT; break;
    case CUT: out[0] = (x - 10) / 40, out[1] = (y - 4) / 12; break;     /* 12 x 40 from 4, 10 */
    case ENLARGED: out[0] = (x + 5) / 80, out[1] = (y + 3) / 30; break; /* 30 x 80 from -3, -5 */
    case TURNED: out[0] = y / HEIGHT, out[1] = 1 - x / WIDTH; break;    /* counter-clockwise */
    }
}

static void place(enum moves kind, struct pm_placed *p)
{
    static const float pad[3] = { 0 };

    pm_geometry_begin(&p->geometry, HEIGHT, WIDTH);
    if (kind == MIRRORED)
        pm_geometry_mirror(&p->geometry);
    if (kind == CUT)
        pm_geometry_window(&p->geometry, 4, 10, 12, 40, pad);
    if (kind == ENLARGED)
        pm_geometry_window(&p->geometry, -3, -5, 30, 80, pad);
    if (kind == TURNED)
        pm_geometry_turn(&p->geometry);
    pm_geometry_resize(&p->geometry, 16, 48, PM_RESIZE_BILINEAR);
}

/* Shares up to 2, in float after each of three operations: 3 * 2^-23. */
static void follow_pixels(void **state)
{
    struct pm_arena *a = pm_arena_create();
    const struct pm_task *t = made(a);
    const struct pm_image8 picture = { HEIGHT, WIDTH, 3, NULL };
    uint8_t *bytes = NULL;
    struct pm_example *e = record(corners, 8, &bytes);

    (void)state;
    for (enum moves kind = RESIZED; kind <= TURNED; kind++) {
        struct pm_placed *p = pm_arena_alloc(a, sizeof *p);
        float out[2 * CONTROLS];

        place(kind, p);
        assert_int_equal(pm_recognition_points(t, e, &picture, p, "own", out), 1);
        for (int k = 0; k < CONTROLS; k++) {
            const float *end = corners + (k < CONTROLS / 2 ? 0 : 4);
            const double share = k % (CONTROLS / 2) / (CONTROLS / 2 - 1.0);
            double want[2];

            moved(kind, end[0] + share * ((double)end[2] - end[0]),
                  end[1] + share * ((double)end[3] - end[1]), want);
            for (int c = 0; c < 2; c++)
                assert_true(fabs(out[2 * k + c] - want[c]) <= 3 * 0x1p-23);
        }
    }
    pm_example_destroy(&e);
    pm_free(bytes);
    pm_arena_destroy(&a);
}

/* A record without key points leaves the fields 0, one with wrong ones is an error. */
static void fields(void **state)
{
    static const float wrong[] = { 1, 2, 3, 4, 5, 6 };
    struct pm_arena *a = pm_arena_create();
    const struct pm_task *t = made(a);
    const struct pm_image8 picture = { HEIGHT, WIDTH, 3, NULL };
    struct pm_placed *p = pm_arena_alloc(a, sizeof *p);
    struct pm_field_list list = { 0 };
    float points[2 * CONTROLS], weight;
    void *const out[] = { NULL, NULL, NULL, points, &weight };

    (void)state;
    pm_recognition_fields(t, true, (struct pm_frame){ 16, 48 }, &list);
    assert_int_equal(list.count, 5);
    assert_string_equal(list.list[3].name, "keypoints");
    assert_string_equal(list.list[4].name, "keypoint_weights");
    pm_free(list.list);
    list = (struct pm_field_list){ 0 };
    pm_recognition_fields(t, false, (struct pm_frame){ 16, 48 }, &list);
    assert_int_equal(list.count, 3);
    pm_free(list.list);
    place(RESIZED, p);
    for (int i = 0; i < 3; i++) {
        uint8_t *bytes = NULL;
        struct pm_example *e = record(i == 0 ? corners : i == 1 ? NULL : wrong, i == 2 ? 6 : 8,
                                      &bytes);

        memset(points, 0x7f, sizeof points);
        assert_int_equal(pm_recognition_make_points(t, e, &picture, p, "record 3", out),
                         i == 2 ? PM_EDATA : PM_OK);
        if (i < 2)
            assert_true(weight == (i == 0));
        for (int k = 0; k < 2 * CONTROLS && i == 1; k++)
            assert_true(points[k] == 0);
        pm_example_destroy(&e);
        pm_free(bytes);
    }
    assert_non_null(strstr(pm_error_text(), "record 3: image/keypoints: 6 numbers"));
    pm_arena_destroy(&a);
}

/* The weights of the pictures with key points add up to 1 over the slices of all processes. */
static void weights(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_task *t = made(a);
    struct pm_sampler sampler = { .task = t, .train = true };
    float list[2][4] = { { 1, 0, 1, 1 }, { 0, 0, 1, 0 } };
    struct pm_batch b[2];

    (void)state;
    for (int k = 0; k < 2; k++) {
        void *field[] = { NULL, NULL, NULL, NULL, list[k] };

        b[k] = (struct pm_batch){ .field = field, .examples = 4, .valid = 4 };
        pm_recognition_whole_batch(&sampler, &b[k]);
        assert_true(b[k].sum == (k ? 1 : 3));
        for (int i = 0; i < 4; i++)
            assert_true(list[k][i] == (list[k][i] > 0 ? (float)(1 / b[k].sum) : 0));
        pm_recognition_set_sum(&sampler, &b[k], 4);
    }
    static const float want[2][4] = { { 0.25f, 0, 0.25f, 0.25f }, { 0, 0, 0.25f, 0 } };

    assert_memory_equal(list, want, sizeof want);
    /* A slice without key points, and a net whose loss is off: weights are not there. */
    memset(list, 0, sizeof list);
    b[0].field = (void *[]){ NULL, NULL, NULL, NULL, list[0] };
    pm_recognition_whole_batch(&sampler, &b[0]);
    assert_true(b[0].sum == 0 && list[0][0] == 0);
    t->loss.keypoint_weight = 0;
    b[0].field = NULL;
    pm_recognition_whole_batch(&sampler, &b[0]);
    pm_recognition_set_sum(&sampler, &b[0], 1);
    pm_arena_destroy(&a);
}

/* ---- metrics -------------------------------------------------------------------------------- */

/* Three pictures in two batches: two with key points, whose control points are off by known steps.
 * A merged score has the same bits. */
static void scored(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_task *t = made(a);
    struct pm_score *m[2] = { pm_recognition_score_create(t), pm_recognition_score_create(t) };
    struct pm_str pack = { 0 };
    /* x off by 1/8 and y by 1/4, then by 1/2 and 0: 6 and 4 pixels of 48 x 16, then 24. */
    const float off[3][2] = { { 0.125f, 0.25f }, { 9, 9 }, { -0.5f, 0 } };
    const double distance = (hypot(6, 4) + 24) / 2;
    const double squared = ((0.125 * 0.125 + 0.25 * 0.25) / 2 + 0.5 * 0.5 / 2) / 2;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct pm_recognition_truth *truth = pm_calloc(1, sizeof *truth);
        float logits[2] = { 1, 0 }, points[2 * CONTROLS];
        const void *outputs[] = { logits, points };

        assert_int_equal(pm_letters_read("a", 1, false, "own", &truth->text), PM_OK);
        truth->points = i == 1 ? NULL : pm_malloc(sizeof points);
        for (int k = 0; k < 2 * CONTROLS; k++) {
            points[k] = (float)k / 16 + off[i][k % 2];
            if (truth->points)
                truth->points[k] = (float)k / 16;
        }
        void *host[] = { truth };
        const struct pm_batch b = { .examples = 1, .valid = 1, .host = host,
                                    .record = (const uint64_t[]){ (uint64_t)i } };

        assert_int_equal(pm_recognition_score_add(m[0], &b, outputs, 1.5), PM_OK);
        pm_recognition_truth_free(truth);
    }
    pm_recognition_score_pack(m[0], &pack);
    assert_int_equal(pm_recognition_score_merge(m[1], pack.text, pack.length), PM_OK);
    for (int k = 0; k < 2; k++) {
        cJSON *o = cJSON_CreateObject();

        pm_recognition_score_report(m[k], o);
        assert_true(fabs(cJSON_GetObjectItem(o, "keypoint_distance")->valuedouble - distance) <
                    1e-12);
        assert_true(fabs(cJSON_GetObjectItem(o, "loss")->valuedouble - (1.5 + 5 * squared)) <
                    1e-12);
        assert_true(cJSON_GetObjectItem(o, "word_accuracy")->valuedouble == 1);
        cJSON_Delete(o);
    }
    t->model.transformer = PM_TRANSFORMER_NONE; /* a pack of a net with control points */
    struct pm_score *other = pm_recognition_score_create(t);

    assert_int_equal(pm_recognition_score_merge(other, pack.text, pack.length), PM_EDATA);
    pm_recognition_score_destroy(&other);
    for (int k = 0; k < 2; k++)
        pm_recognition_score_destroy(&m[k]);
    pm_str_free(&pack);
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(follow_pixels), cmocka_unit_test(fields),
                                        cmocka_unit_test(weights), cmocka_unit_test(scored) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
