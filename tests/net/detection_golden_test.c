/* detection_loss against tests/golden/detection_losses.json, which detection_losses.py computed
 * with the Object Detection API: losses, gradients and the anchors that count, on every device. */
#include <cjson/cJSON.h>
#include <pumice/plan.h>

#include "base/golden_file.h"
#include "device/every_device.h"

enum { IMAGES = 2, ANCHORS = 20, TRUTHS = 4, COLUMNS = 4 };

/* As the class Scene of the script. */
struct scene {
    uint32_t seed;
    float anchors[ANCHORS][4], boxes[IMAGES][TRUTHS][4], weights[IMAGES][TRUTHS];
    int32_t classes[IMAGES][TRUTHS], matches[IMAGES * ANCHORS];
    float codes[IMAGES * ANCHORS][4], scores[IMAGES * ANCHORS][COLUMNS];
};

static int draw(struct scene *s, int below)
{
    return number(&s->seed, below);
}

static void draw_box(struct scene *s, float box[4])
{
    const int y = draw(s, 768), x = draw(s, 768);

    box[0] = (float)y / 1024, box[1] = (float)x / 1024;
    box[2] = (float)(y + 100 + draw(s, 200)) / 1024;
    box[3] = (float)(x + 100 + draw(s, 200)) / 1024;
}

static void draw_maps(struct scene *s)
{
    for (int i = 0; i < IMAGES * ANCHORS * 4; i++)
        s->codes[i / 4][i % 4] = (float)(draw(s, 2049) - 1024) / 256;
    for (int i = 0; i < IMAGES * ANCHORS * COLUMNS; i++)
        s->scores[i / COLUMNS][i % COLUMNS] = (float)(draw(s, 2049) - 1024) / 256;
}

static void scene_make(struct scene *s)
{
    s->seed = 1;
    for (int i = 0; i < ANCHORS; i++)
        draw_box(s, s->anchors[i]);
    for (int i = 0; i < IMAGES * TRUTHS; i++)
        draw_box(s, s->boxes[i / TRUTHS][i % TRUTHS]);
    for (int i = 0; i < IMAGES * TRUTHS; i++)
        s->classes[i / TRUTHS][i % TRUTHS] = draw(s, COLUMNS - 1);
    for (int i = 0; i < IMAGES * TRUTHS; i++)
        s->weights[i / TRUTHS][i % TRUTHS] = (float)(1 + draw(s, 8)) / 8;
    for (int i = 0; i < IMAGES * ANCHORS; i++) {
        const int fate = draw(s, 8), g = draw(s, TRUTHS);

        s->matches[i] = fate < 2 && i < ANCHORS ? g : fate == 7 ? -2 : -1;
    }
    draw_maps(s);
}

static struct pm_net *net_of(const char *options, int codes)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "x", PM_SHAPE1(1), PM_F32), *in[7];

    in[0] = pm_net_add(net, "codes", x, "parameter shape=[2,4,5,%d]", codes);
    in[1] = pm_net_add(net, "scores", x, "parameter shape=[2,4,5,4]");
    in[2] = pm_net_input(net, "anchors", PM_SHAPE2(ANCHORS, 4), PM_F32);
    in[3] = pm_net_input(net, "matches", PM_SHAPE2(IMAGES, ANCHORS), PM_I32);
    in[4] = pm_net_input(net, "boxes", PM_SHAPE3(IMAGES, TRUTHS, 4), PM_F32);
    in[5] = pm_net_input(net, "classes", PM_SHAPE2(IMAGES, TRUTHS), PM_I32);
    in[6] = pm_net_input(net, "weights", PM_SHAPE2(IMAGES, TRUTHS), PM_F32);
    pm_net_add_many(net, "loss", in, 7, "detection_loss %s", options);
    ok(net->error);
    return net;
}

/* Compares with the list `name` of the case, relative to its largest number. The API computes in
 * float32, too: codes, which have errors of some 2^-24 / 0.1 * 10, pass to the gradients. */
static void compare(const cJSON *c, const char *name, const float *got, int count)
{
    const cJSON *list = cJSON_GetObjectItem(c, name), *item;
    double largest = 0;
    int i = 0;

    assert_int_equal(cJSON_GetArraySize(list), count);
    cJSON_ArrayForEach(item, list)
        largest = fmax(largest, fabs(item->valuedouble));
    cJSON_ArrayForEach(item, list) {
        if (!(fabs(got[i] - item->valuedouble) <= 5e-5 * largest))
            fail_msg("%s: %s[%d] is %.8g, the golden %.8g",
                     cJSON_GetObjectItem(c, "options")->valuestring, name, i, got[i],
                     item->valuedouble);
        i++;
    }
}

/* The scores of an anchor that counts have a gradient, unless it is ignored. */
static void compare_kept(const cJSON *c, const struct scene *s, const float *dscores)
{
    const cJSON *kept = cJSON_GetObjectItem(c, "kept"), *item;
    bool counts[IMAGES * ANCHORS] = { false };

    cJSON_ArrayForEach(item, kept)
        counts[item->valueint] = true;
    for (int i = 0; i < IMAGES * ANCHORS; i++)
        if ((dscores[i * COLUMNS] != 0) != (counts[i] && s->matches[i] != -2))
            fail_msg("%s: whether anchor %d counts differs",
                     cJSON_GetObjectItem(c, "options")->valuestring, i);
}

/* The miner's numbers of matched and unmatched anchors that count in each image. */
static void compare_mined(const cJSON *c, const struct scene *s, const struct pm_plan *p)
{
    const float *positives = pm_plan_output(p, 0, "loss/mined_positives", 0);
    const float *negatives = pm_plan_output(p, 0, "loss/mined_negatives", 0);
    int matched[IMAGES] = { 0 }, unmatched[IMAGES] = { 0 };
    const cJSON *item;

    cJSON_ArrayForEach(item, cJSON_GetObjectItem(c, "kept")) {
        matched[item->valueint / ANCHORS] += s->matches[item->valueint] >= 0;
        unmatched[item->valueint / ANCHORS] += s->matches[item->valueint] == -1;
    }
    for (int i = 0; i < IMAGES && positives; i++)
        if (positives[i] != (float)matched[i] || negatives[i] != (float)unmatched[i])
            fail_msg("%s, image %d: %g and %g anchors count, the golden has %d and %d",
                     cJSON_GetObjectItem(c, "options")->valuestring, i, (double)positives[i],
                     (double)negatives[i], matched[i], unmatched[i]);
}

static void give(struct pm_plan *p, const char *name, const void *data, size_t bytes)
{
    memcpy(pm_plan_input(p, 0, name, 0), data, bytes);
}

static void compare_losses(const cJSON *c, const struct pm_plan *p)
{
    const float *loc = pm_plan_output(p, 0, "loss/localization_loss", 0);
    const float *cls = pm_plan_output(p, 0, "loss/classification_loss", 0);
    const double a = cJSON_GetObjectItem(c, "localization")->valuedouble;
    const double b = cJSON_GetObjectItem(c, "classification")->valuedouble;

    if (!(fabs(*loc - a) <= 2e-5 * a && fabs(*cls - b) <= 1e-5 * b))
        fail_msg("%s: the losses are %.8g and %.8g, the goldens %.8g and %.8g",
                 cJSON_GetObjectItem(c, "options")->valuestring, *loc, *cls, a, b);
}

/* One code fewer for a square: the script cuts the list of each anchor. */
static void one_case(struct pm_device *d, const struct scene *s, const cJSON *c)
{
    const struct pm_plan_options o = { .name = "train", .train = true, .slots = 1,
                                       .loss_share = 1, .micro_batches = 1 };
    const char *options = cJSON_GetObjectItem(c, "options")->valuestring;
    const int size = strstr(options, "coder=square") ? 3 : 4;
    struct pm_net *net = net_of(options, size);
    float codes[IMAGES * ANCHORS * 4], dcodes[IMAGES * ANCHORS * 4];
    float dscores[IMAGES * ANCHORS * COLUMNS];
    struct pm_variables *v = NULL;
    struct pm_plan *p = NULL;

    for (int i = 0; i < IMAGES * ANCHORS * size; i++)
        codes[i] = s->codes[i / size][i % size];
    ok(pm_variables_create(d, net, true, NULL, &v));
    ok(pm_variables_allocate(v));
    ok(pm_variables_init(v, 1, NULL));
    ok(pm_plan_create(net, d, v, &o, &p));
    ok(pm_plan_load(p));
    ok(pm_variables_write(v, 0, -1, codes));
    ok(pm_variables_write(v, 1, -1, s->scores[0]));
    give(p, "anchors", s->anchors, sizeof s->anchors);
    give(p, "matches", s->matches, sizeof s->matches);
    give(p, "boxes", s->boxes, sizeof s->boxes);
    give(p, "classes", s->classes, sizeof s->classes);
    give(p, "weights", s->weights, sizeof s->weights);
    *pm_plan_step(p, 0) = (struct pm_step){ .loss_scale = 1 };
    ok(pm_plan_submit(p, 0));
    ok(pm_plan_wait(p, 0));
    compare_losses(c, p);
    ok(pm_buffer_read(d, v->grads, v->offset[0], dcodes,
                      (size_t)(IMAGES * ANCHORS * size) * sizeof(float)));
    ok(pm_buffer_read(d, v->grads, v->offset[1], dscores, sizeof dscores));
    compare(c, "dcodes", dcodes, IMAGES * ANCHORS * size);
    compare(c, "dscores", dscores, IMAGES * ANCHORS * COLUMNS);
    compare_kept(c, s, dscores);
    compare_mined(c, s, p);
    assert_true(!strstr(options, "hard_example_miner") ==
                !pm_plan_output(p, 0, "loss/mined_negatives", 0));
    pm_plan_destroy(&p);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
}

static void losses_and_gradients(void **state)
{
    struct every_device e = { 0 };
    struct scene s;
    cJSON *all = read_golden("detection_losses.json"), *c;

    (void)state;
    scene_make(&s);
    while (next_device(&e))
        cJSON_ArrayForEach(c, all)
            one_case(e.d, &s, c);
    cJSON_Delete(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(losses_and_gradients) };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
