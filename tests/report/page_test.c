/* report.html: curves of bounded size that keep their spikes, text that stays text, and pages of
 * whole, new, damaged and hostile run folders. */
#include "report/run_folder.h"

#include "report/page.h"

#include <pumice/draw.h>

/* ---- curves ------------------------------------------------------------------------------ */

static void curve_is_bounded(void **state)
{
    struct pm_curves c = { 0 };
    struct pm_curve_point points[2 * PM_CURVE_BINS], smooth[PM_CURVE_BINS];
    const int steps = 1000000, spike = 765432;
    double sum = 0;
    uint64_t count = 0;

    (void)state;
    for (int i = 1; i <= steps; i++)
        pm_curves_add(&c, "train", "loss", (uint64_t)i, i == spike ? 50 : i == spike + 1 ? -50 : 1);
    const struct pm_curve *curve = pm_curves_find(&c, "train", "loss");
    assert_non_null(curve);
    assert_in_range(curve->count, PM_CURVE_BINS / 2 - 1, PM_CURVE_BINS);
    for (int i = 0; i < curve->count; i++) {
        sum += curve->bins[i].sum;
        count += curve->bins[i].count;
    }
    assert_int_equal(count, steps); /* nothing is lost, */
    assert_true(fabs(sum - (steps - 2)) < 1e-6);

    const int n = pm_curve_points(curve, points);
    bool up = false, down = false;
    assert_true(n <= 1000);
    for (int i = 0; i < n; i++) {
        assert_true(i == 0 || points[i].step >= points[i - 1].step);
        up |= points[i].value == 50 && points[i].step == spike; /* spikes stand where they were, */
        down |= points[i].value == -50 && points[i].step == spike + 1;
    }
    assert_true(up && down);
    assert_int_equal(pm_curve_smooth(curve, smooth), curve->count);
    assert_true(fabs(smooth[10].value - 1) < 1e-9);
    assert_true(pm_curve_best(curve, true).value == 50 && pm_curve_best(curve, true).step == spike);
    assert_true(pm_curve_best(curve, false).step == spike + 1);
    pm_curves_free(&c);
}

static void few_values_stay_as_they_are(void **state)
{
    struct pm_curves c = { 0 };
    struct pm_curve_point points[2 * PM_CURVE_BINS];
    static const double values[] = { 3, 1, NAN, 2, INFINITY, 5 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(values); i++)
        pm_curves_add(&c, "eval", "loss", 1000 * (i + 1), values[i]);
    pm_curves_add(&c, "eval", "loss", 10, 77); /* a step that was before: not taken */
    const struct pm_curve *curve = pm_curves_find(&c, "eval", "loss");
    assert_non_null(curve);
    assert_int_equal(curve->not_finite, 2);
    assert_int_equal(pm_curve_points(curve, points), 4);
    assert_true(points[2].step == 4000 && points[2].value == 2);
    assert_true(curve->last == 5 && curve->last_step == 6000);
    pm_curves_add(&c, "eval", "nothing", 1, NAN);
    assert_null(pm_curves_find(&c, "eval", "nothing"));
    assert_null(pm_curves_find(&c, "train", "loss"));
    pm_curves_free(&c);
}

/* Steps far apart widen bins until some meet. */
static void sparse_steps(void **state)
{
    struct pm_curves c = { 0 };

    (void)state;
    for (uint64_t i = 0; i < 1501; i++)
        pm_curves_add(&c, "train", "loss", i << 20, (double)i);
    const struct pm_curve *curve = pm_curves_find(&c, "train", "loss");
    assert_in_range(curve->count, PM_CURVE_BINS / 2 - 1, PM_CURVE_BINS);
    assert_true(curve->bins[0].lowest == 0 && curve->bins[curve->count - 1].highest == 1500);
    pm_curves_free(&c);
}

static void reads_what_is_new(void **state)
{
    char *folder = make_folder(), path[512];
    struct pm_curves c = { 0 };
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    pm_curves_read(&c, path); /* no file yet */
    assert_int_equal(c.count, 0);
    put(folder, "metrics.jsonl",
        "{\"kind\": \"train\", \"step\": 1, \"loss\": 2}\n"
        "rubbish\n[1, 2]\n{\"kind\": 3, \"step\": 2, \"loss\": 2}\n{\"kind\": \"train\", \"loss\": "
        "9}\n"
        "{\"kind\": \"train\", \"step\": 2, \"loss\": null}\n{\"kind\": \"train\", \"step\": 3, "
        "\"lo");
    pm_curves_read(&c, path);
    const struct pm_curve *curve = pm_curves_find(&c, "train", "loss");
    assert_non_null(curve);
    assert_true(curve->count == 1 && curve->not_finite == 1 && c.last_step == 2);
    assert_non_null(f = fopen(path, "a"));
    fputs("ss\": 7}\n", f); /* the line's end arrives */
    fclose(f);
    pm_curves_read(&c, path);
    curve = pm_curves_find(&c, "train", "loss");
    assert_true(curve->count == 2 && curve->last == 7);
    /* another file */
    put(folder, "metrics.jsonl", "{\"kind\": \"train\", \"step\": 1, \"loss\": 4}\n");
    pm_curves_read(&c, path);
    curve = pm_curves_find(&c, "train", "loss");
    assert_true(curve->count == 1 && curve->last == 4);
    pm_curves_free(&c);
    drop_folder(folder);
}

/* ---- text -------------------------------------------------------------------------------- */

static void text_is_escaped(void **state)
{
    struct pm_str s = { 0 };

    (void)state;
    PM_HTML(&s, "<a title=\"{}\">{}{}</a>", "\"><script>alert('&')</script>", "\x01gr\xc3\xbcn {}",
            NULL);
    assert_string_equal(s.text, "<a "
                                "title=\"&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/"
                                "script&gt;\">\\x01gr\xc3\xbcn {}</a>");
    pm_str_free(&s);
    pm_html_json_text(&s, "</script><!--\"\\\n\xe2\x82\xac");
    assert_string_equal(s.text,
                        "\"\\u003c/script\\u003e\\u003c!--\\u0022\\u005c\\u005cx0A\xe2\x82\xac\"");
    pm_str_free(&s);
    pm_html_json_number(&s, NAN);
    assert_string_equal(s.text, "null");
    pm_str_free(&s);
}

static void numbers_for_people(void **state)
{
    (void)state;
    assert_string_equal(PM_COUNT_TEXT(0), "0");
    assert_string_equal(PM_COUNT_TEXT(999), "999");
    assert_string_equal(PM_COUNT_TEXT(1234567), "1,234,567");
    assert_string_equal(PM_COUNT_TEXT(-1234), "-1,234");
    assert_string_equal(PM_NUMBER(0.012345), "0.01235");
    assert_string_equal(PM_NUMBER(1.25e-7), "1.25e-7");
    assert_string_equal(PM_NUMBER(2.5e10), "2.5e10");
    assert_string_equal(PM_NUMBER(12345.6), "12,346");
    assert_string_equal(PM_NUMBER(NAN), "\xe2\x80\x93");
    assert_string_equal(PM_SHARE(0.97425), "97.42\xc2\xa0%");
    assert_string_equal(PM_SHARE(0.99999), "99.99\xc2\xa0%");
    assert_string_equal(PM_SHARE(1), "100\xc2\xa0%");
    assert_string_equal(PM_PERCENT(0.7764), "77.6\xc2\xa0%");
    assert_string_equal(PM_PERCENT(0.99999), "99.9\xc2\xa0%");
    assert_string_equal(PM_SECONDS(0.0345), "34.5\xc2\xa0ms");
    assert_string_equal(PM_SECONDS(12.34), "12.3\xc2\xa0s");
    assert_string_equal(PM_SECONDS(245), "4\xc2\xa0min 05\xc2\xa0s");
    assert_string_equal(PM_SECONDS(7500), "2\xc2\xa0h 05\xc2\xa0min");
    assert_string_equal(PM_SECONDS(100000), "1\xc2\xa0" "d 3\xc2\xa0h");
}

static void base64(void **state)
{
    struct pm_str s = { 0 };

    (void)state;
    pm_str_base64(&s, "", 0);
    assert_int_equal(s.length, 0);
    pm_str_base64(&s, "f", 1), pm_str_base64(&s, "fo", 2), pm_str_base64(&s, "foobar", 6);
    pm_str_base64(&s, "\xff\xfe\xfd", 3);
    assert_string_equal(s.text, "Zg==Zm8=Zm9vYmFy//79");
    pm_str_free(&s);
}

/* ---- pages ------------------------------------------------------------------------------- */

static struct pm_str page_of(const char *folder, bool live)
{
    struct pm_report *r = pm_report_open(folder, live);
    struct pm_str html = { 0 };

    pm_report_page(&r, 1, &html);
    pm_report_close(&r);
    return html;
}

static void whole_run(void **state)
{
    char *folder = make_folder();

    (void)state;
    put_whole_run(folder, 10, 2.3, 0.1);
    struct pm_str html = page_of(folder, false);
    for (const char *const *part = (const char *const[]){ "<!doctype html>",
                                                          "finished",
                                                          "3,274,634 parameters",
                                                          "55,000 training pictures",
                                                          "Best accuracy",
                                                          "step <b>1,000</b> of 1,000",
                                                          "id=\"loss\"",
                                                          "id=\"metrics\"",
                                                          "id=\"lr\"",
                                                          "id=\"gradient_norm\"",
                                                          "id=\"time\"",
                                                          "waiting for data",
                                                          "Confusion matrix",
                                                          "Most frequent mistakes",
                                                          "Precision and recall by class",
                                                          "class 3",
                                                          "\xe2\x9c\x95 wrong",
                                                          "\xe2\x9c\x93 right",
                                                          "97\xc2\xa0% sure",
                                                          "Some GPU",
                                                          "RADV 1",
                                                          "100 MiB",
                                                          "75\xc2\xa0%",
                                                          "command line",
                                                          "3 unreadable images",
                                                          "class=\"warning\"",
                                                          "class=\"matrix\"",
                                                          NULL };
         *part; part++)
        assert_contains(html.text, *part);
    assert_null(strstr(html.text, "example.org")); /* no picture from elsewhere */
    assert_null(strstr(html.text, "http:"));
    assert_null(strstr(html.text, "https:"));
    assert_int_equal(count_text(html.text, "<script"), 2);
    assert_true(html.length < 600 << 10);
    pm_str_free(&html);
    drop_folder(folder);
}

/* Every loss that a net has is drawn, whatever its layer is called; their average is none of
 * them. */
static void parts_of_the_loss(void **state)
{
    char *folder = make_folder();

    (void)state;
    put_run(folder, "finished", 0.1);
    put(folder, "metrics.jsonl",
        "{\"kind\": \"train\", \"step\": 1, \"loss\": 2, \"loss_average\": 2, "
        "\"main_loss\": 1, \"loss_center\": 0.5, \"loss_offset\": 0.3, \"edge_loss\": 0.1, "
        "\"loss_scale_1\": 0.1}\n");
    struct pm_str html = page_of(folder, false);
    const char *parts = strstr(html.text, "id=\"parts\"");
    assert_non_null(parts);
    for (const char *const *part = (const char *const[]){ "main head", "centres", "offsets",
                                                          "edges", "loss_scale_1", NULL };
         *part; part++)
        assert_contains(parts, *part);
    assert_null(strstr(parts, "loss_average"));
    pm_str_free(&html);
    drop_folder(folder);
}

/* A page says what is not there yet. */
static void new_run(void **state)
{
    char *folder = make_folder();

    (void)state;
    struct pm_report *r = pm_report_open(folder, false);
    assert_true(pm_report_empty(r));
    pm_report_close(&r);
    put_run(folder, "running", 0.1);
    struct pm_str html = page_of(folder, true);
    assert_contains(html.text, "training</span>");
    assert_contains(html.text, "No values yet");
    assert_contains(html.text, "No evaluation yet");
    assert_null(strstr(html.text, "nan"));
    assert_null(strstr(html.text, "inf"));
    pm_str_free(&html);
    html = page_of(folder, false); /* nobody holds the lock */
    assert_contains(html.text, "interrupted");
    pm_str_free(&html);
    put_evaluation(folder, 60, "x"); /* by pumice eval alone */
    html = page_of(folder, false);
    assert_null(strstr(html.text, "o evaluation yet"));
    assert_contains(html.text, "not evaluated while training");
    assert_contains(html.text, "No evaluation while training");
    pm_str_free(&html);
    drop_folder(folder);
}

static void hostile_run(void **state)
{
    static const char evil[] = "</script><script>alert(1)</script><b title='x' \xe2\x82\xac";
    char *top = make_folder(), folder[512], text[1024];

    (void)state;
    snprintf(folder, sizeof folder, "%s/<i>'\"&", top);
    assert_int_equal(pm_make_folders(folder), 0);
    put_evaluation(folder, 60, evil);
    snprintf(text, sizeof text,
             "{\"state\": \"%s\", \"net\": \"%s\", \"data\": \"%s\", "
             "\"started\": 7, \"error\": \"%s\", \"step\": -1e400, \"steps\": \"many\", "
             "\"devices\": [{\"name\": \"%s\"}, 3], \"origins\": [], \"metrics\": {\"x\": 1}}",
             evil, evil, evil, evil, evil);
    put(folder, "run.json", text);
    snprintf(text, sizeof text, "{\"%s\": \"%s\", \"deep\": [[[[{}]]]]}", evil, evil);
    put(folder, "config.json", text);
    snprintf(text, sizeof text, "2026 warning: %s\n", evil);
    put(folder, "log.txt", text);
    snprintf(text, sizeof text, "{\"kind\": \"eval\", \"step\": 1, \"%s\": 7}\n"
             "{\"kind\": \"eval\", \"step\": 2, \"%s\": 5}\n"
             "{\"kind\": \"train\", \"step\": 1e300, \"loss\": 1}\n"
             "{\"kind\": \"train\", \"step\": 5, \"loss\": 1e300}\n"
             "{\"kind\": \"train\", \"step\": 6, \"loss\": -1e300}\n", evil, evil);
    put(folder, "metrics.jsonl", text);
    struct pm_str html = page_of(folder, false);
    assert_int_equal(count_text(html.text, "<script"), 2); /* the data and our own */
    assert_int_equal(count_text(html.text, "</script"), 2);
    assert_null(strstr(html.text, "<b title="));
    assert_null(strstr(html.text, "<i>'"));
    assert_contains(html.text, "&lt;script&gt;alert(1)");
    pm_str_free(&html);

    struct pm_report *runs[] = { pm_report_open(folder, false), pm_report_open(folder, false) };
    pm_report_page(runs, 2, &html);
    assert_int_equal(count_text(html.text, "<script"), 2);
    pm_report_close(&runs[0]);
    pm_report_close(&runs[1]);
    pm_str_free(&html);
    drop_folder(top);
}

/* Values of wrong kinds, indices out of range, lists of unequal length. */
static void damaged_evaluation(void **state)
{
    static const char *const texts[] = {
        "", "{", "[]", "{}", "{\"per_class\": 3, \"labels\": 4, \"confusion\": 5, \"samples\": 6}",
        "{\"per_class\": {\"count\": [5, \"x\", -3], \"right\": [9], \"predicted\": [-1, {}]}, "
        "\"unanswered\": 1e99, \"labels\": [null], \"confusion\": [0, 1, 2, 9, 0, 1, 0, -1, 1, 0, "
        "0, 1e99, 1], \"samples\": [3, {}, {\"picture\": \"data:image/png;base64,\\\" "
        "onerror=\\\"x\", \"label\": 1e99, \"probability\": null}]}",
    };
    char *folder = make_folder();

    (void)state;
    put_run(folder, "finished", 0.1);
    for (size_t i = 0; i < PM_COUNT(texts); i++) {
        put(folder, "evaluation.json", texts[i]);
        struct pm_str html = page_of(folder, false);
        assert_contains(html.text, "</html>");
        assert_null(strstr(html.text, "\" onerror"));
        pm_str_free(&html);
    }
    drop_folder(folder);
}

/* Of a segmentation pixels are counted, and pictures have their maps beside them. */
static void counted_pixels(void **state)
{
    char *folder = make_folder();

    (void)state;
    put_run(folder, "finished", 0.1);
    put(folder, "evaluation.json",
        "{\"of\": \"pixels\", \"step\": 9, \"count\": 2, \"labels\": [\"road\", \"sky\"], "
        "\"colors\": [\"#804080\", \"red;x\"], "
        "\"labels_offset\": 0, \"per_class\": {\"count\": [100, 300], \"predicted\": [150, 250], "
        "\"right\": [50, 200], \"iou\": [0.25, 0.57]}, \"confusion\": [0, 0, 50, 0, 1, 50, 1, 0, "
        "100, 1, 1, 200], \"samples\": [{\"picture\": \"" DOT "\", \"width\": 1, "
        "\"pixel_accuracy\": 0.625, \"beside\": [{\"what\": \"label\", \"picture\": \"" DOT
        "\"}, {\"what\": \"predicted<\", \"picture\": \"" DOT
        "\"}, {\"what\": \"x\", \"picture\": \"http://example.org/x.png\"}, 3]}]}");
    struct pm_str html = page_of(folder, false);
    for (const char *const *part =
             (const char *const[]){ "<figcaption>label</figcaption>",
                                    "<figcaption>predicted&lt;</figcaption>",
                                    "62.5\xc2\xa0% of the pixels right", "<th class=\"n\">IoU</th>",
                                    "<th class=\"n\">pixels</th>", "25\xc2\xa0%",
                                    "<i style=\"background:#804080\"></i>road", NULL };
         *part; part++)
        assert_contains(html.text, *part);
    assert_null(strstr(html.text, "example.org"));
    assert_null(strstr(html.text, "red;x"));
    assert_null(strstr(html.text, "F1"));
    pm_str_free(&html);
    drop_folder(folder);
}

/* Counts that are too long for a cell are shares of their row. */
static void large_counts(void **state)
{
    char *folder = make_folder();

    (void)state;
    put_run(folder, "finished", 0.1);
    put(folder, "evaluation.json",
        "{\"of\": \"pixels\", \"step\": 9, \"count\": 2, \"labels\": [\"road\", \"sky\"], "
        "\"per_class\": {\"count\": [6718735, 1000], \"predicted\": [6718735, 1000], "
        "\"right\": [6718000, 998]}, \"confusion\": [0, 0, 6718000, 0, 1, 735, 1, 0, 2, 1, 1, "
        "998]}");
    struct pm_str html = page_of(folder, false);
    assert_contains(html.text, "in percent of the row");
    assert_contains(html.text, "predicted: sky: 735 of 6,718,735 (0.01");
    assert_contains(html.text, ">&lt;1</td>");
    assert_contains(html.text, ">100</td>");
    assert_null(strstr(html.text, ">6,718,000</td>"));
    pm_str_free(&html);
    drop_folder(folder);
}

/* An evaluation as a file keeps it. */
static void put_named(const char *folder, const char *file, const char *split, const char *data,
                      const char *checkpoint, double accuracy, int minute)
{
    char text[1024];

    snprintf(
        text, sizeof text,
        "{\"step\": 600, \"count\": 78, \"split\": \"%s\", \"data\": \"%s\", "
        "\"data_path\": \"/x/%s\", \"checkpoint\": \"checkpoints/%s\", \"averages\": false, "
        "\"written\": \"2026-01-02 03:%02d:05 UTC\", \"metrics\": {\"accuracy\": %g}, "
        "\"labels\": [\"in %s\", \"b\"], \"per_class\": {\"count\": [5, 5], \"right\": [4, 4]}, "
        "\"confusion\": [0, 0, 4, 0, 1, 1, 1, 1, 4, 1, 0, 1]}",
        split, data, data, checkpoint, minute, accuracy, split);
    put(folder, file, text);
}

/* Each evaluation is named by checkpoint, data folder and split, and shows its own numbers. */
static void several_evaluations(void **state)
{
    char *folder = make_folder(), path[1024];
    const char *first, *second, *third;

    (void)state;
    put_run(folder, "finished", 0.1);
    put_metrics(folder, 2.3);
    snprintf(path, sizeof path, "%s/eval_test", folder);
    assert_int_equal(pm_make_folders(path), 0);
    put_named(folder, "evaluation.json", "validation", "data/x", "step-000600.safetensors", 0.625,
              1);
    put_named(folder, "eval_test/evaluation-a.json", "test", "data/x", "best-000600.safetensors",
              0.75, 2);
    put_named(folder, "eval_test/evaluation-b.json", "test", "data/y", "step-000600.safetensors",
              0.875, 3);
    put_named(folder, "eval_test/other.json", "nothing", "data/z", "step-000600.safetensors", 0.1,
              3);
    struct pm_str html = page_of(folder, false);
    first = strstr(html.text, "id=\"evaluation-0\">validation at step 600</h3>");
    second = strstr(html.text, "id=\"evaluation-1\">test at step 600</h3>");
    third = strstr(html.text, "id=\"evaluation-2\">test at step 600, best checkpoint</h3>");
    assert_true(first && second && third && first < second && second < third);
    assert_contains(first,
                    "78 pictures of data/x, split validation, checkpoints/step-000600.safetensors, "
                    "accuracy 62.50\xc2\xa0%");
    assert_contains(second,
                    "78 pictures of data/y, split test, checkpoints/step-000600.safetensors, "
                    "accuracy 87.50\xc2\xa0%");
    assert_contains(third,
                    "78 pictures of data/x, split test, checkpoints/best-000600.safetensors, "
                    "accuracy 75.00\xc2\xa0%");
    assert_true(strstr(first, "title=\"in validation\"") < second);
    assert_int_equal(count_text(html.text, "Confusion matrix</h3>"), 3);
    assert_null(strstr(html.text, "nothing"));
    assert_contains(html.text, "href=\"#evaluation-2\"");
    /* The best is training's own. */
    assert_null(strstr(html.text, "<dt>Best accuracy</dt><dd>87.5"));
    pm_str_free(&html);
    /* The same evaluation made again takes the place of training's. */
    put_named(folder, "eval_test/evaluation-c.json", "validation", "data/x",
              "step-000600.safetensors", 0.5, 4);
    html = page_of(folder, false);
    assert_contains(html.text, "id=\"evaluation-0\">validation at step 600</h3>");
    assert_contains(html.text, "accuracy 50.00\xc2\xa0%");
    assert_null(strstr(html.text, "accuracy 62.50\xc2\xa0%"));
    assert_int_equal(count_text(html.text, "Confusion matrix</h3>"), 3);
    pm_str_free(&html);
    /* Without evaluations while training the list shows what was evaluated. */
    put(folder, "metrics.jsonl", "");
    put(folder, "evaluation.json", "{\"step\": 5, \"count\": 7, \"metrics\": {\"miou\": 0.25}}");
    html = page_of(folder, false);
    assert_contains(html.text, "<th class=\"n\">miou</th>");
    assert_contains(html.text,
                    "7 pictures (the data folder and split are not recorded), miou 25.00");
    pm_str_free(&html);
    /* The list names evaluations that have no section on the page, too, without a link. */
    for (int i = 0; i < 10; i++) {
        char name[64], data[16];
        snprintf(name, sizeof name, "eval_test/evaluation-1%d.json", i);
        snprintf(data, sizeof data, "data/%d", i);
        put_named(folder, name, "test", data, "step-000600.safetensors", 0.5, 5 + i);
    }
    html = page_of(folder, false);
    assert_true(count_text(html.text, "<td>data/") >= 10);
    assert_int_equal(count_text(html.text, "href=\"#evaluation-"),
                     count_text(html.text, "id=\"evaluation-"));
    pm_str_free(&html);
    drop_folder(folder);
}

static void thousand_classes(void **state)
{
    char *folder = make_folder();

    (void)state;
    put_whole_run(folder, 1000, 7, 0.1);
    struct pm_str html = page_of(folder, false);
    assert_contains(html.text, "data-matrix=\"0\"");
    assert_contains(html.text, "class 999");
    assert_true(html.length < 2 << 20);
    pm_str_free(&html);
    drop_folder(folder);
}

static void comparison(void **state)
{
    char *top = make_folder(), folder[3][512];
    struct pm_report *runs[3];
    struct pm_str html = { 0 };

    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(folder[i], sizeof folder[i], "%s/run%d", top, i);
        put_whole_run(folder[i], 4, 2 + i, i == 2 ? 0.5 : 0.25);
        runs[i] = pm_report_open(folder[i], false);
    }
    pm_report_page(runs, 3, &html);
    assert_contains(html.text, "3 runs");
    assert_contains(html.text, "id=\"run-2\"");
    assert_contains(html.text, "<code>0.25</code>");
    assert_contains(html.text, "<code>0.5</code>");
    assert_contains(html.text, "schedule.base_lr");
    assert_null(strstr(html.text, ">run.folder<"));      /* differs always */
    assert_null(strstr(html.text, ">schedule.warmup_steps<")); /* differs nowhere */
    assert_int_equal(count_text(html.text, "<td class=\"n best\">"), 3); /* accuracy, recall_at_5,
                                                                          * loss */
    assert_contains(html.text, "path class=\"line c2 d2 r2\"");
    assert_contains(html.text, ">100\xc2\xa0%</span>"); /* shares end there, also such as stay the
                                                         * same */
    assert_null(strstr(html.text, ">105\xc2\xa0%</span>"));
    assert_null(strstr(html.text, ">110\xc2\xa0%</span>"));
    for (int i = 0; i < 3; i++)
        pm_report_close(&runs[i]);
    pm_str_free(&html);
    drop_folder(top);
}

/* Instances by COCO's figures, and edges, have the most metrics: every one has its column and its
 * chart, and of a single run a curve unlike all others. */
static void comparison_of_many_metrics(void **state)
{
    enum { METRICS = 22 };
    char *top = make_folder(), folder[2][512], name[64];
    struct pm_report *runs[2];
    struct pm_str html = { 0 }, line = { 0 };

    (void)state;
    pm_str_add(&line, "{\"kind\": \"eval\", \"step\": 100");
    for (int m = 0; m < METRICS; m++)
        pm_str_add(&line, ", \"figure_%d\": 0.5", m);
    pm_str_add(&line, "}\n");
    for (int i = 0; i < 2; i++) {
        snprintf(folder[i], sizeof folder[i], "%s/run%d", top, i);
        put_whole_run(folder[i], 4, 2, 0.25);
        put(folder[i], "metrics.jsonl", line.text);
        runs[i] = pm_report_open(folder[i], false);
    }
    pm_report_page(runs, 2, &html);
    for (int m = 0; m < METRICS; m++) {
        snprintf(name, sizeof name, ">best figure_%d<", m);
        assert_contains(html.text, name);
        snprintf(name, sizeof name, "Evaluation: figure_%d<", m);
        assert_contains(html.text, name);
    }
    pm_str_free(&html);
    html = page_of(folder[0], false);
    assert_int_equal(count_text(html.text, " dotted\"><i></i>figure_"), METRICS);
    for (int look = 0; look < 32; look++) {
        snprintf(name, sizeof name, "\"c%d d%d dotted\"><i></i>figure_", look % 8, look / 8);
        assert_true(count_text(html.text, name) <= 1);
    }
    for (int i = 0; i < 2; i++)
        pm_report_close(&runs[i]);
    pm_str_free(&html);
    pm_str_free(&line);
    drop_folder(top);
}

/* ---- pictures ---------------------------------------------------------------------------- */

static void shrinks(void **state)
{
    uint8_t pixels[6 * 4];
    const struct pm_image8 in = { 4, 6, 1, pixels };
    struct pm_image8 out;

    (void)state;
    for (int i = 0; i < 24; i++)
        pixels[i] = (uint8_t)(10 * (i % 6));
    pm_draw_shrink(&in, 3, &out);
    assert_true(out.height == 2 && out.width == 3 && out.channels == 1);
    assert_true(out.pixels[0] == 5 && out.pixels[1] == 25 && out.pixels[5] == 45);
    pm_image_free(&out);
    pm_draw_shrink(&in, 100, &out);
    assert_true(out.height == 4 && out.width == 6);
    assert_memory_equal(out.pixels, pixels, sizeof pixels);
    pm_image_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curve_is_bounded), cmocka_unit_test(few_values_stay_as_they_are),
        cmocka_unit_test(sparse_steps), cmocka_unit_test(reads_what_is_new),
        cmocka_unit_test(text_is_escaped), cmocka_unit_test(numbers_for_people),
        cmocka_unit_test(base64), cmocka_unit_test(whole_run), cmocka_unit_test(new_run),
        cmocka_unit_test(parts_of_the_loss),
        cmocka_unit_test(hostile_run), cmocka_unit_test(damaged_evaluation),
        cmocka_unit_test(counted_pixels),
        cmocka_unit_test(large_counts), cmocka_unit_test(several_evaluations),
        cmocka_unit_test(thousand_classes), cmocka_unit_test(comparison),
        cmocka_unit_test(comparison_of_many_metrics), cmocka_unit_test(shrinks),
    };

    return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
