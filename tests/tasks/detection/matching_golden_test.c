/* Matching: scenes of tests/golden/matching.json, which matching.py computed with the Object
 * Detection API. */
#include "matching_scene.h"

static void golden_box(uint32_t *n, float box[4])
{
    int y = number(n, 1100) - 38, x = number(n, 1100) - 38;
    int h = 40 + number(n, 400), w = 40 + number(n, 400);

    box[0] = (float)y / 1024, box[1] = (float)x / 1024;
    box[2] = (float)(y + h) / 1024, box[3] = (float)(x + w) / 1024;
}

/* As scene() in matching.py. */
static void golden_scene(int index, struct scene *s)
{
    enum { ALONE = 6, ANCHORS = 150, TRUTHS = 14 };
    uint32_t n = (uint32_t)index + 1;

    s->anchors = ANCHORS;
    s->t.count = index == ALONE ? 1 : TRUTHS;
    for (int i = 0; i < ANCHORS; i++)
        golden_box(&n, s->anchor[i]);
    for (int i = 0; i < TRUTHS; i++) {
        int fate = number(&n, 6);

        if (fate == 0)
            memcpy(s->box[i], s->anchor[number(&n, ANCHORS)], sizeof s->box[i]);
        else if (fate == 1 && i)
            memcpy(s->box[i], s->box[number(&n, i)], sizeof s->box[i]);
        else
            golden_box(&n, s->box[i]);
        s->weight[i] = number(&n, 8) == 0 ? 0 : 1;
        s->score[i] = (float)number(&n, 9) / 8;
    }
    if (index == ALONE) {
        const float box[] = { 3000 / 1024.0f, 3000 / 1024.0f, 3100 / 1024.0f, 3100 / 1024.0f };

        memcpy(s->box[0], box, sizeof box);
        s->weight[0] = s->score[0] = 1;
    }
    point(s);
}

static struct pm_matcher golden_setting(const cJSON *all, const cJSON *setting, int scene)
{
    const char *name = cJSON_GetArrayItem(setting, 0)->valuestring;
    const cJSON *matched = cJSON_GetArrayItem(setting, 1);
    struct pm_matcher m = {
        .similarity = !strcmp(name, "iou") ? PM_IOU : !strcmp(name, "ioa") ? PM_IOA
                                                                          : PM_THRESHOLDED_IOU,
        .ignore_thresholds = cJSON_IsNull(matched),
        .iou_threshold = (float)cJSON_GetObjectItem(all, "iou_threshold")->valuedouble,
        .negatives_lower_than_unmatched = cJSON_IsTrue(cJSON_GetArrayItem(setting, 3)),
        .force_match_for_each_row = cJSON_IsTrue(cJSON_GetArrayItem(setting, 4)),
        .strict = scene == 6, /* its box overlaps no anchor */
    };

    m.matched_threshold = (float)matched->valuedouble;
    m.unmatched_threshold = (float)cJSON_GetArrayItem(setting, 2)->valuedouble;
    return m;
}

/* Removes true boxes that equal an earlier one; own receives the numbers of the others. */
static void without_copies(struct scene *s, int own[])
{
    int kept = 0;

    for (int i = 0; i < s->t.count; i++) {
        bool copy = false;

        for (int k = 0; k < kept; k++)
            copy |= memcmp(s->box[k], s->box[i], sizeof s->box[i]) == 0;
        if (copy)
            continue;
        memmove(s->box[kept], s->box[i], sizeof s->box[i]);
        s->weight[kept] = s->weight[i];
        own[kept++] = i;
    }
    s->t.count = kept;
}

static void bipartite_goldens(void **state)
{
    cJSON *all = read_golden("matching.json");
    const cJSON *scene, *list, *name;
    struct scene *s = pm_calloc(1, sizeof *s);
    int32_t out[MOST_ANCHORS];
    int index = 0, matched = 0, own[MOST_TRUTHS];

    (void)state;
    cJSON_ArrayForEach(scene, cJSON_GetObjectItem(all, "scenes")) {
        golden_scene(index++, s);
        without_copies(s, own);
        name = cJSON_GetObjectItem(all, "bipartite")->child;
        cJSON_ArrayForEach(list, cJSON_GetObjectItem(scene, "bipartite")) {
            const struct pm_matcher m = {
                .type = PM_MATCHER_BIPARTITE,
                .similarity = strcmp(name->valuestring, "iou") ? PM_NEG_SQ_DIST : PM_IOU,
            };

            match(&m, s, out, NULL);
            for (int i = 0; i < s->anchors; i++) {
                const int want = cJSON_GetArrayItem(list, i)->valueint;

                matched += want >= 0;
                if ((out[i] < 0 ? out[i] : own[out[i]]) != want)
                    fail_msg("scene %d, %s: anchor %d: %d instead of %d", index - 1,
                             name->valuestring, i, out[i], want);
            }
            name = name->next;
        }
    }
    assert_int_equal(matched, 116);
    pm_free(s);
    cJSON_Delete(all);
}

static void goldens(void **state)
{
    cJSON *all = read_golden("matching.json");
    const cJSON *scene, *setting, *matches;
    struct scene *s = pm_calloc(1, sizeof *s);
    struct pm_truth_best best[MOST_TRUTHS];
    int32_t out[MOST_ANCHORS];
    int index = 0, compared = 0;

    (void)state;
    cJSON_ArrayForEach(scene, cJSON_GetObjectItem(all, "scenes")) {
        golden_scene(index, s);
        matches = cJSON_GetObjectItem(scene, "matches")->child;
        cJSON_ArrayForEach(setting, cJSON_GetObjectItem(all, "settings")) {
            struct pm_matcher m = golden_setting(all, setting, index);
            const cJSON *want = matches->child;

            match(&m, s, out, best);
            for (int i = 0; i < s->anchors; i++, want = want->next, compared++)
                if (out[i] != want->valueint)
                    fail_msg("scene %d, %s: anchor %d: %d instead of %d", index,
                             cJSON_PrintUnformatted(setting), i, out[i], want->valueint);
            for (int r = 0; m.similarity == PM_IOU && r < s->t.count; r++)
                assert_float_equal(best[r].similarity,
                                   (float)cJSON_GetArrayItem(cJSON_GetObjectItem(scene, "best"), r)
                                       ->valuedouble, 0);
            matches = matches->next;
        }
        index++;
    }
    assert_int_equal(compared, 7 * 8 * 150);
    pm_free(s);
    cJSON_Delete(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goldens), cmocka_unit_test(bipartite_goldens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
