/* Makes run folders with invented results, in the form that training leaves them, for the tests
 * of report.html. */
#ifndef RUN_FOLDER_H
#define RUN_FOLDER_H

#include "base/unit.h"

#include <pumice/report.h>

#include <stdio.h>

/* A grey pixel. */
#define DOT       \
    "data:image/" \
    "png;base64," \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mN8AAAA6wDqLUhQcwAAAABJRU5ErkJggg=="

static inline void put(const char *folder, const char *name, const char *text)
{
    struct pm_str path = { 0 };

    pm_str_add(&path, "%s/%s", folder, name);
    assert_int_equal(pm_file_write(path.text, text, strlen(text)), 0);
    pm_str_free(&path);
}

/* name: NULL for "class N", or the name of one class, which holds foreign text. */
static inline void put_evaluation(const char *folder, int classes, const char *name)
{
    struct pm_str s = { 0 };

    pm_str_add(&s,
               "{\"step\": 900, \"count\": %d, \"metrics\": {\"accuracy\": 0.9, \"loss\": null}, "
               "\"labels_offset\": 0, \"labels\": [",
               10 * classes);
    for (int i = 0; i < classes; i++)
        pm_str_add(&s, name && i == 1 ? "%s\"%s\"" : "%s\"class %s%d\"", i ? "," : "",
                   name && i == 1 ? name : "", i);
    pm_str_add(&s, "], \"per_class\": {\"count\": [");
    for (int i = 0; i < classes; i++)
        pm_str_add(&s, "%s10", i ? "," : "");
    pm_str_add(&s, "], \"predicted\": [");
    for (int i = 0; i < classes; i++)
        pm_str_add(&s, "%s%d", i ? "," : "", 12 - i % 5);
    pm_str_add(&s, "], \"right\": [");
    for (int i = 0; i < classes; i++)
        pm_str_add(&s, "%s%d", i ? "," : "", 10 - i % 4);
    pm_str_add(&s, "]}, \"confusion\": [");
    for (int i = 0; i < classes; i++)
        pm_str_add(&s, i % 4 ? "%s%d,%d,%d,%d,%d,%d" : "%s%d,%d,%d", i ? "," : "", i, i, 10 - i % 4,
                   i, (i * 7 + 3) % classes, i % 4);
    pm_str_add(
        &s,
        "], \"samples\": ["
        "{\"record\": 3, \"file\": \"K\xc3\xa4" "fer <1>.jpg\", \"picture\": \"" DOT
        "\", \"width\": 1, \"label\": 1, \"predicted\": 0, \"right\": false, "
        "\"probability\": 0.97, \"label_probability\": 0.01},"
        "{\"record\": 1234, \"picture\": \"" DOT
        "\", \"width\": 1, \"label\": 0, \"predicted\": 0, \"right\": true, "
        "\"probability\": 0.88},"
        "{\"picture\": \"http://example.org/x.png\", \"width\": 1, \"label\": 0, \"predicted\": 0}"
        "]}");
    put(folder, "evaluation.json", s.text);
    pm_str_free(&s);
}

/* An evaluation of detected boxes of two classes. The first picture has a true object that was
 * found, one that was missed, a right and a loose detection. */
static inline void put_boxes_evaluation(const char *folder)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "{\"step\": 900, \"count\": 2, \"metrics\": {\"map\": 0.5, \"map_50\": 0.75}, "
                   "\"of\": \"boxes\", \"threshold\": 0.25, \"labels\": [\"cat\", \"dog<\"], "
                   "\"labels_offset\": 0, \"errors\": {\"right\": 5, \"loose\": 1, "
                   "\"wrong_class\": 2, \"double\": 0, \"background\": 3, \"both\": 0, "
                   "\"missed\": 4, \"ignored\": 1}, \"per_class\": {\"count\": [6, 3], "
                   "\"predicted\": [8, 4], \"right\": [4, 1], \"ap\": [0.75, 0.25], "
                   "\"ap_50\": [0.875, null], \"best_f1\": [0.625, null], "
                   "\"best_score\": [0.375, null]}, "
                   "\"confusion\": [0, 0, 4, 0, 2, 2, 1, 1, 1, 1, 0, 2, 2, 0, 2, 2, 1, 3], "
                   "\"curves\": {");
    for (int k = -1; k < 2; k++) {
        pm_str_add(&s, k < 0 ? "\"all\": [" : k == 0 ? ", \"per_class\": [[" : ", [");
        for (int i = 0; i <= 100; i++)
            pm_str_add(&s, i ? ", %.3f" : "%.3f", i > 80 - 10 * k ? 0 : 1 - 0.005 * i);
        pm_str_add(&s, "]");
    }
    pm_str_add(
        &s,
        "]}, \"samples\": [{\"picture\": \"" DOT
        "\", \"width\": 4, \"height\": 3, \"right\": false, \"errors\": 2, \"truth\": ["
        "{\"box\": [0.25, 0.5, 0.75, 1.5], \"label\": 0, \"kind\": \"missed\"}, "
        "{\"box\": [0.1, 0.1, 0.2, 0.2], \"label\": 1, \"kind\": \"right\"}], \"found\": ["
        "{\"box\": [0.1, 0.1, 0.25, 0.2], \"label\": 1, \"kind\": \"right\", \"score\": 0.75}, "
        "{\"box\": [0.5, 0.1, 0.9, 0.2], \"label\": 0, \"kind\": \"loose\", \"score\": 0.5}]}, "
        "{\"picture\": \"" DOT "\", \"width\": 4, \"height\": 3, \"right\": true, "
        "\"errors\": 0, \"truth\": [], \"found\": []}]}");
    put(folder, "evaluation.json", s.text);
    pm_str_free(&s);
}

/* An evaluation of rotated boxes: a missed bar of 160 x 40 pixels at (200, 150), turned by 0.5, and
 * one found at the border, turned by a quarter back. */
static inline void put_rotated_evaluation(const char *folder)
{
    put(folder, "evaluation.json",
        "{\"of\": \"boxes\", \"threshold\": 0.25, \"labels\": [\"cat\"], \"per_class\": "
        "{\"count\": [2]}, \"samples\": [{\"picture\": \"" DOT "\", \"width\": 400, "
        "\"height\": 300, \"right\": false, \"errors\": 1, \"truth\": ["
        "{\"box\": [0.313647, 0.300511, 0.686353, 0.699489], \"rotated\": "
        "[0.5, 0.5, 0.133333, 0.4, 0.5], \"label\": 0, \"kind\": \"missed\"}], \"found\": ["
        "{\"box\": [-0.1, 0.4, 0.3, 0.5], \"rotated\": [0.1, 0.45, 0.133333, 0.3, -1.5708], "
        "\"label\": 0, \"kind\": \"right\", \"score\": 0.75}]}]}");
}

/* An evaluation of a detector of two stages, with three classes. stages: the member of this name;
 * STAGES, in which the last class has no object, or a damaged one. */
static inline void put_stages_evaluation(const char *folder, const char *stages)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "{\"step\": 900, \"count\": 2, \"metrics\": {\"map\": 0.5, "
                   "\"proposal_recall_50\": 0.75}, \"of\": \"boxes\", \"threshold\": 0.25, "
                   "\"labels\": [\"cat\", \"dog<\", \"cow\"], \"labels_offset\": 0, "
                   "\"per_class\": {\"count\": [6, 10, 0], \"predicted\": [8, 4, 1], "
                   "\"right\": [4, 1, 0], \"ap\": [0.75, 0.25, null]}, \"stages\": %s}",
               stages);
    put(folder, "evaluation.json", s.text);
    pm_str_free(&s);
}
#define STAGES                                                                                     \
    "{\"objects\": 1216, \"found\": 912, \"no_proposal\": 152, \"rejected\": 76, "                \
    "\"suppressed\": 76, \"proposal_recall_50\": 0.875, \"proposal_recall_70\": 0.5, "             \
    "\"per_class\": {\"objects\": [1206, 10, 0], \"found\": [911, 1, 0], "                         \
    "\"no_proposal\": [150, 2, 0], \"rejected\": [73, 3, 0], \"suppressed\": [72, 4, 0], "         \
    "\"proposal_recall_50\": [0.5, 0.8, null], \"proposal_recall_70\": [0.25, 0.4, null]}}"

/* Writes 1000 steps, with a line for every fifth. The first loss is `loss`. */
static inline void put_metrics(const char *folder, double loss)
{
    struct pm_str s = { 0 };

    for (int step = 5; step <= 1000; step += 5) {
        const double now = loss * exp(-step / 300.0) + 0.3 + 0.02 * sin(step);
        pm_str_add(
            &s,
            "{\"kind\": \"train\", \"step\": %d, \"loss\": %.6g, \"l2\": 0.01, \"lr\": %.6g, "
            "\"gradient_norm\": %.4g, \"images_per_second\": %d, \"seconds_per_step\": 0.01, "
            "\"wait_share\": 0.05, \"seconds_other\": 0.001, \"seconds_data\": 0.002, "
            "\"seconds_device\": 0.04, \"seconds_evaluating\": %d}\n",
            step, now, 0.1 * (1 - step / 1001.0), 1 + now, 5000 + step % 7 * 100, step % 100 == 0);
        if (step % 100 == 0)
            pm_str_add(&s,
                       "{\"kind\": \"eval\", \"step\": %d, \"accuracy\": %.5g, "
                       "\"recall_at_5\": 0.99, \"loss\": %.5g}\n",
                       step, 1 - 0.5 * now / loss, 1.1 * now);
    }
    put(folder, "metrics.jsonl", s.text);
    pm_str_free(&s);
}

static inline void put_run(const char *folder, const char *state, double lr)
{
    char text[2048];

    snprintf(
        text, sizeof text,
        "{\"version\": \"0.1.0\", \"state\": \"%s\", "
        "\"started\": \"2026-01-02 03:04:05 UTC\", \"seconds\": 125, \"step\": 1000, "
        "\"steps\": 1000, \"task\": \"classification\", \"net\": \"lenet\", \"data\": \"mnist\", "
        "\"train_examples\": 55000, \"classes\": 10, \"batch_size\": 64, \"parameters\": 3274634, "
        "\"origins\": {\"model.name\": \"x.json:3\", \"schedule.base_lr\": \"command line\"}, "
        "\"metrics\": [{\"name\": \"accuracy\", \"higher_is_better\": true}, "
        "{\"name\": \"loss\", \"higher_is_better\": false}], \"best_metric\": \"accuracy\", "
        "\"devices\": [{\"name\": \"Some GPU\", \"address\": \"vulkan:0\", \"driver\": \"RADV 1\", "
        "\"memory_bytes\": 8589934592, \"memory_used\": 104857600, \"examples\": 48, "
        "\"images_per_second\": 4000.5}, {\"name\": \"AMD EPYC\", \"address\": \"cpu\", "
        "\"examples\": 16}]}",
        state);
    put(folder, "run.json", text);
    snprintf(text, sizeof text,
             "{\"model\": {\"name\": \"lenet\"}, \"schedule\": {\"base_lr\": %g, "
             "\"warmup_steps\": 0}, \"run\": {\"folder\": \"%s\", \"steps\": 1000}}",
             lr, folder);
    put(folder, "config.json", text);
    put(folder, "log.txt", "2026-01-02T03:04:05Z train: lenet, 10 classes\n"
        "2026-01-02T03:04:06Z warning: data: 3 unreadable images\n"
        "2026-01-02T03:05:06Z eval: step 100, 5000 pictures\n");
}

/* A finished run. */
static inline void put_whole_run(const char *folder, int classes, double loss, double lr)
{
    assert_int_equal(pm_make_folders(folder), 0);
    put_run(folder, "finished", lr);
    put_metrics(folder, loss);
    put_evaluation(folder, classes, NULL);
}

/* The report page of a run folder; the caller frees it. */
static inline struct pm_str page_of(const char *folder, bool live)
{
    struct pm_report *r = pm_report_open(folder, live);
    struct pm_str html = { 0 };

    pm_report_page(&r, 1, &html);
    pm_report_close(&r);
    return html;
}

#endif
