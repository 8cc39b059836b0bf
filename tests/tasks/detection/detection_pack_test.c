/* Packed scores of the detection task: merged, they give the same bits as one process, in all sets
 * of metrics and in detections.json. */
#include "detection_setup.h"
#include "tasks/packed_scores.h"

enum { BATCHES = 9, SIZE = 4, LAST = 3, MOST_FOUND = 100, MOST_TRUE = 6, PROPOSALS = 5 };

#define ALL_SETS "\"metrics\": [\"coco\", \"voc\", \"open_images\", \"open_images_challenge\"]"

/* ---- drawn batches ----------------------------------------------------------------------- */

static struct {
    struct pm_box_truth truth[SIZE][MOST_TRUE];
    int verified[SIZE][CLASSES];
    struct pm_detection_truths truths[SIZE];
    float boxes[SIZE][MOST_FOUND][4], scores[SIZE][MOST_FOUND];
    float rotated[SIZE][MOST_FOUND][5]; /* the same boxes turned; the input is a square */
    int32_t classes[SIZE][MOST_FOUND], counts[SIZE];
    uint64_t records[SIZE];
    void *host[SIZE], *fields[1];
    float proposals[SIZE][PROPOSALS][4], second[SIZE * PROPOSALS * CLASSES][4];
    float second_scores[SIZE * PROPOSALS * CLASSES];
    int32_t proposal_counts[SIZE];
    const void *outputs[8];
} drawings[BATCHES];
static struct scored_batch batches[BATCHES];

/* Draws true objects and detections near them. Scores are coarse, so that many are equal. */
static void draw_picture(int b, int i, uint32_t *seed)
{
    int found = 0;
    struct pm_detection_truths *t = &drawings[b].truths[i];

    *t = (struct pm_detection_truths){ .height = 300 + (int)drawn(seed, 200),
                                       .width = 400,
                                       .truth = drawings[b].truth[i],
                                       .count = (int)drawn(seed, MOST_TRUE + 1) };
    for (int g = 0; g < t->count; g++) {
        const float top = (float)drawn(seed, 600) / 1000, left = (float)drawn(seed, 600) / 1000;
        const float side = 0.05f + (float)drawn(seed, 350) / 1000;
        const int label = (int)drawn(seed, CLASSES);

        drawings[b].truth[i][g] = (struct pm_box_truth){
            .box = { { (double)top * t->height, (double)left * t->width,
                       (double)(top + side) * t->height, (double)(left + side) * t->width } },
            .area = drawn(seed, 3) ? NAN : 500,
            .label = label,
            .crowd = drawn(seed, 9) == 0,
            .difficult = drawn(seed, 7) == 0,
            .group_of = drawn(seed, 7) == 0
        };
        for (uint32_t k = drawn(seed, 4); k > 0; k--, found++) {
            const float moved = (float)drawn(seed, 80) / 1000;
            const float box[4] = { top + moved, left, top + side + moved, left + side };

            memcpy(drawings[b].boxes[i][found], box, sizeof box);
            drawings[b].scores[i][found] = (float)(1 + drawn(seed, 19)) / 20;
            drawings[b].classes[i][found] = drawn(seed, 5) ? label : (int32_t)drawn(seed, CLASSES);
        }
    }
    drawings[b].counts[i] = found;
    if (drawn(seed, 2)) {
        drawings[b].verified[i][0] = (int)drawn(seed, CLASSES);
        t->verified = drawings[b].verified[i];
        t->verified_count = (int)drawn(seed, 2);
    }
}

/* Draws proposals near true objects, and boxes of the second stage near any of them. */
static void draw_stages(int b, int i, uint32_t *seed)
{
    const struct pm_detection_truths *t = &drawings[b].truths[i];

    drawings[b].proposal_counts[i] = (int)drawn(seed, PROPOSALS + 1);
    for (int r = 0; r < PROPOSALS * (1 + CLASSES) && t->count; r++) {
        const double *v = t->truth[drawn(seed, (uint32_t)t->count)].box.v;
        const float moved = (float)drawn(seed, 80) / 1000;
        const float top = (float)v[0] / (float)t->height, left = (float)v[1] / (float)t->width;
        const float box[4] = { top + moved, left, (float)v[2] / (float)t->height + moved,
                               (float)v[3] / (float)t->width };
        const int at = i * PROPOSALS * CLASSES + r - PROPOSALS;

        memcpy(r < PROPOSALS ? drawings[b].proposals[i][r] : drawings[b].second[at], box,
               sizeof box);
        if (r >= PROPOSALS)
            drawings[b].second_scores[at] = (float)drawn(seed, 20) / 20;
    }
}

/* Every kind of name: a number, a text, none; and a file of another name. */
static void name_picture(int b, int i)
{
    static char *const names[] = { "123", "a \"name\"", NULL, "" };
    static char *const files[] = { NULL, "b/\xff.jpg", "123" };

    drawings[b].truths[i].name = names[(b + i) % 4];
    drawings[b].truths[i].file = files[(b + i) % 3];
}

static struct evaluation evaluation_of(const struct setup *s)
{
    uint32_t seed = 4711, stages_seed = 815;

    memset(drawings, 0, sizeof drawings);
    for (int b = 0; b < BATCHES; b++) {
        for (int i = 0; i < SIZE; i++) {
            draw_picture(b, i, &seed);
            name_picture(b, i);
            draw_stages(b, i, &stages_seed);
            drawings[b].host[i] = &drawings[b].truths[i];
            drawings[b].records[i] = 1000 - (uint64_t)(b * SIZE + i); /* in any order */
        }
        drawings[b].outputs[PM_OUT_BOXES] = drawings[b].boxes;
        drawings[b].outputs[PM_OUT_SCORES] = drawings[b].scores;
        drawings[b].outputs[PM_OUT_CLASSES] = drawings[b].classes;
        drawings[b].outputs[PM_OUT_COUNT] = drawings[b].counts;
        drawings[b].outputs[PM_OUT_PROPOSALS] = drawings[b].proposals;
        drawings[b].outputs[PM_OUT_PROPOSAL_COUNT] = drawings[b].proposal_counts;
        drawings[b].outputs[PM_OUT_SECOND_BOXES] = drawings[b].second;
        drawings[b].outputs[PM_OUT_SECOND_SCORES] = drawings[b].second_scores;
        batches[b] = (struct scored_batch){
            .batch = { .field = drawings[b].fields,
                       .frame = { SIDE, SIDE },
                       .examples = SIZE,
                       .valid = b == BATCHES - 1 ? LAST : SIZE,
                       .record = drawings[b].records,
                       .host = drawings[b].host },
            .outputs = drawings[b].outputs,
            .loss = 0.3 / (b + 1) /* the order of additions shows in the last bits */
        };
    }
    return (struct evaluation){
        .row = s->e->task_row, .task = s->e->task, .batches = batches, .count = BATCHES
    };
}

/* A record for the pictures of samples. The caller frees the bytes. */
static uint8_t *make_record(struct evaluation *e)
{
    struct pm_objects o;
    uint8_t *bytes = NULL;

    pm_objects_start(&o, 8, 8);
    record_of(&o, &bytes, &e->record_size);
    pm_objects_free(&o);
    e->record = bytes;
    return bytes;
}

/* ---- tests ------------------------------------------------------------------------------- */

static void check(const char *text, bool damaged)
{
    struct setup s = set_up(text);
    struct evaluation e = evaluation_of(&s);
    uint8_t *bytes = make_record(&e);

    check_evaluation(&e);
    if (damaged)
        check_damage(&e);
    pm_free(bytes);
    tear_down(&s);
}

static void all_sets(void **state)
{
    (void)state;
    check(CONFIG("}, \"eval\": {" ALL_SETS ", \"recall_range\": [0.1, 0.8]}}"), true);
}

static void labelled_classes(void **state)
{
    (void)state;
    check(CONFIG("}, \"eval\": {" ALL_SETS ", \"skip_unlabeled\": true, "
                 "\"score_threshold\": \"best\"}}"),
          false);
}

/* Turns the drawn boxes about their centres: detections, and true objects in pixels. */
static void turn_boxes(void)
{
    for (int b = 0; b < BATCHES; b++)
        for (int i = 0; i < SIZE; i++) {
            for (int k = 0; k < drawings[b].counts[i]; k++) {
                const float *v = drawings[b].boxes[i][k];
                const float turned[5] = { (v[0] + v[2]) / 2, (v[1] + v[3]) / 2, v[2] - v[0],
                                          (v[3] - v[1]) / 2, 0.2f * (float)(k % 7) - 0.5f };

                memcpy(drawings[b].rotated[i][k], turned, sizeof turned);
            }
            for (int g = 0; g < drawings[b].truths[i].count; g++) {
                struct pm_box_truth *t = &drawings[b].truth[i][g];
                const double *v = t->box.v;
                const double turned[5] = { (v[0] + v[2]) / 2, (v[1] + v[3]) / 2, v[2] - v[0],
                                           (v[3] - v[1]) / 2, 0.1 * g };

                memcpy(t->rotated, turned, sizeof turned);
            }
            drawings[b].outputs[PM_OUT_BOXES] = drawings[b].rotated;
        }
}

/* Rotated boxes: their numbers are packed, too, and DOTA's files are written. Upright scores are
 * refused. */
static void rotated_boxes(void **state)
{
    struct setup s = set_up(CONFIG("}, \"eval\": {" ALL_SETS "}}"));
    struct pm_task t = *s.e->task;
    struct evaluation e = evaluation_of(&s);
    uint8_t *bytes = make_record(&e);

    (void)state;
    t.rotated = true;
    check_other_options(&e, &t, "\"detection, 4 classes\"", "\"detection, 4 classes, rotated\"");
    turn_boxes();
    e.task = &t;
    check_evaluation(&e);
    check_damage(&e);
    pm_free(bytes);
    tear_down(&s);
}

/* Scores and boxes that are not finite, and a loss that is not. */
static void diverged(void **state)
{
    struct setup s = set_up(CONFIG("}, \"eval\": {" ALL_SETS "}}"));
    const struct evaluation e = evaluation_of(&s);

    (void)state;
    for (int b = 0; b < BATCHES; b++) {
        drawings[b].scores[1][0] = NAN;
        drawings[b].scores[2][1] = INFINITY;
        drawings[b].boxes[3][0][b % 4] = NAN;
    }
    batches[4].loss = NAN;
    check_evaluation(&e);
    tear_down(&s);
}

/* Two stages also have the lost objects; with boxes by class and shared ones. */
static void two_stages(void **state)
{
    static const char *const texts[] = {
        CONFIG("}}"), CONFIG("}, \"eval\": {\"score_threshold\": \"best\"}}"),
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(texts); i++) {
        struct setup s = set_up(texts[i]);
        const struct pm_task t = two_stages_of(&s, i == 0 ? 1 : CLASSES, PROPOSALS);
        struct evaluation e = evaluation_of(&s);
        uint8_t *bytes = make_record(&e);

        e.task = &t;
        check_evaluation(&e);
        if (i == 0)
            check_damage(&e);
        pm_free(bytes);
        tear_down(&s);
    }
}

static void other_options(void **state)
{
    struct setup s = set_up(CONFIG("}}"));
    struct setup skips = set_up(CONFIG("}, \"eval\": {\"skip_unlabeled\": true}}"));
    const struct evaluation e = evaluation_of(&s);
    struct pm_task more = *s.e->task;
    const struct pm_task staged = two_stages_of(&s, 1, PROPOSALS);

    (void)state;
    more.facts.num_classes++;
    check_other_options(&e, &more, "\"detection, 4 classes\"", "\"detection, 5 classes\"");
    check_other_options(&e, &staged, "\"detection, 4 classes\"", "classes, two stages\"");
    check_other_options(&e, skips.e->task, "\"detection, 4 classes\"", "skip_unlabeled\"");
    tear_down(&s);
    tear_down(&skips);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_sets),
        cmocka_unit_test(labelled_classes),
        cmocka_unit_test(rotated_boxes),
        cmocka_unit_test(diverged),
        cmocka_unit_test(two_stages),
        cmocka_unit_test(other_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
