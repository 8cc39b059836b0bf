/* report.html: pages of complete, new, damaged and hostile run folders. */
#include "report/run_folder.h"

#include "report/page.h"

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
                                                          ">K\xc3\xa4" "fer &lt;1&gt;.jpg</p>",
                                                          ">record 1,234</p>",
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
    assert_null(strstr(html.text, "example.org")); /* no picture from another server */
    assert_null(strstr(html.text, "http:"));
    assert_null(strstr(html.text, "https:"));
    assert_int_equal(count_text(html.text, "<script"), 2);
    assert_true(html.length < 600 << 10);
    pm_str_free(&html);
    drop_folder(folder);
}

static void one_thing_is_singular(void **state)
{
    char *folder = make_folder();

    (void)state;
    put(folder, "run.json", "{\"net\": \"x\", \"classes\": 1, \"train_examples\": 1, "
                            "\"parameters\": 1, \"eval_split\": \"test\"}");
    put(folder, "evaluation.json", "{\"step\": 1, \"count\": 1, \"unanswered\": 1, \"metrics\": "
        "{\"loss\": 1}, \"labels\": [\"a\", \"b\"], \"per_class\": {\"count\": [1, 0], "
        "\"predicted\": [0, 0], \"right\": [0, 0]}}");
    struct pm_str html = page_of(folder, false);
    assert_contains(html.text, "\xc2\xb7 1 parameter \xc2\xb7 1 class \xc2\xb7 1 training "
                               "picture<");
    assert_contains(html.text, ">1 picture (the data");
    assert_contains(html.text, ">1 class is on no picture of this evaluation.<");
    assert_contains(html.text, "not finite. It counts as wrong. The matrix does not include it.<");
    assert_contains(html.text, "<h3>Metrics on test</h3>");
    pm_str_free(&html);
    drop_folder(folder);
}

/* Every loss of the net is drawn, independent of its layer's name; their average has no curve. */
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

/* The score of the best F1 is a threshold: it is not drawn among the metrics. */
static void thresholds(void **state)
{
    char *folder = make_folder();

    (void)state;
    put_run(folder, "finished", 0.1);
    put(folder, "metrics.jsonl", "{\"kind\": \"eval\", \"step\": 1, \"best_f1\": 0.5, "
                                 "\"best_score\": 0.25}\n");
    struct pm_str html = page_of(folder, false);
    assert_contains(html.text, "best_f1");
    assert_null(strstr(html.text, "best_score"));
    pm_str_free(&html);
    drop_folder(folder);
}

/* A page of a new run states what is still missing. */
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
    html = page_of(folder, false); /* no process holds the lock */
    assert_contains(html.text, "interrupted");
    pm_str_free(&html);
    put_evaluation(folder, 60, "x"); /* written by pumice eval only */
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
    assert_int_equal(count_text(html.text, "<script"), 2); /* the data and the page's own script */
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

/* For segmentation the page counts pixels and shows maps beside the pictures. */
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

/* For detection the page draws boxes over the pictures. */
static void boxes(void **state)
{
    char *folder = make_folder();

    (void)state;
    put_run(folder, "finished", 0.1);
    put_boxes_evaluation(folder);
    struct pm_str html = page_of(folder, false);
    for (const char *const *part = (const char *const[]){
             "\xe2\x9c\x95 2 errors", "\xe2\x9c\x93 no error",
             "<i class=\"bad\" tabindex=\"0\" title=\"cat, missed\" style=\"top:25.00%;left:50.00%;"
             "height:50.00%;width:50.00%\"><b class=\"\">cat</b></i>",
             "title=\"dog&lt; 75\xc2\xa0%\"", "<b class=\"\">cat 50\xc2\xa0%, loose</b>",
             "id=\"precision-recall-0\"", "all classes", "\"axis\":\"recall\"", "Kinds of errors",
             "score above 0.25", "<td>wrong class</td><td class=\"n\">2</td>", "(background)",
             "true: cat, predicted: (background): 2 of 6",
             "true: (background), predicted: dog&lt;: 3 of 5", "AP50", "87.5\xc2\xa0%", NULL };
         *part; part++)
        assert_contains(html.text, *part);
    assert_true(strstr(html.text, "<td>dog&lt;</td>") < strstr(html.text, "<td>cat</td>"));
    assert_int_equal(count_text(html.text, "class=\"spark\""), 2);
    assert_null(strstr(html.text, "dog<"));
    assert_null(strstr(html.text, "nan"));
    pm_str_free(&html);
    drop_folder(folder);
}

/* Rotated boxes lie turned inside the upright boxes around them, also inside the clipped part. */
static void rotated_boxes(void **state)
{
    char *folder = make_folder();

    (void)state;
    put_run(folder, "finished", 0.1);
    put_rotated_evaluation(folder);
    struct pm_str html = page_of(folder, false);
    for (const char *const *part = (const char *const[]){
             "<i class=\"bad turned\" tabindex=\"0\" title=\"cat, missed\" "
             "style=\"top:31.36%;left:30.05%;height:37.27%;width:39.90%\"><u style=\""
             "top:32.11%;left:-0.13%;height:35.77%;width:100.26%;transform:rotate(28.65deg)\">"
             "</u><b class=\"\">cat</b></i>",
             "<i class=\"good turned\" tabindex=\"0\" title=\"cat 75\xc2\xa0%\" "
             "style=\"top:0.00%;left:40.00%;height:30.00%;width:10.00%\"><u style=\""
             "top:11.11%;left:-100.00%;height:44.44%;width:300.00%;transform:rotate(-90.00deg)\">"
             "</u>", NULL };
         *part; part++)
        assert_contains(html.text, *part);
    pm_str_free(&html);
    drop_folder(folder);
}

/* A detector of two stages: where objects are lost, the worst class first. */
static void lost_objects(void **state)
{
    char *folder = make_folder();

    (void)state;
    put_run(folder, "finished", 0.1);
    put_stages_evaluation(folder, STAGES);
    struct pm_str html = page_of(folder, false);
    for (const char *const *part = (const char *const[]){
             "Where objects are lost", "score above 0.25",
             "<tr class=\"best\"><td>all classes</td><td class=\"n\">1,216</td>"
             "<td class=\"n\">75\xc2\xa0% (912)</td><td class=\"n\">12.5\xc2\xa0% (152)</td>"
             "<td class=\"n\">6.25\xc2\xa0% (76)</td><td class=\"n\">6.25\xc2\xa0% (76)</td>"
             "<td class=\"n\">87.5\xc2\xa0%</td><td class=\"n\">50\xc2\xa0%</td></tr>\n"
             "<tr><td>dog&lt;</td><td class=\"n\">10</td><td class=\"n\">10\xc2\xa0% (1)</td>"
             "<td class=\"n\">20\xc2\xa0% (2)</td><td class=\"n\">30\xc2\xa0% (3)</td>"
             "<td class=\"n\">40\xc2\xa0% (4)</td><td class=\"n\">80\xc2\xa0%</td>"
             "<td class=\"n\">40\xc2\xa0%</td></tr>\n<tr><td>cat</td><td class=\"n\">1,206</td>",
             NULL };
         *part; part++)
        assert_contains(html.text, *part);
    assert_int_equal(count_text(html.text, "<td>cow</td>"), 0); /* it has no object */
    assert_null(strstr(html.text, "nan"));
    pm_str_free(&html);
    drop_folder(folder);
}

/* Without counts that fit there is no card; classes without them are left out. */
static void damaged_stages(void **state)
{
    static const struct { const char *stages; int rows; } cases[] = {
        { "3", 0 }, { "{}", 0 }, { "{\"objects\": 0}", 0 },
        { "{\"objects\": 2, \"found\": 1, \"no_proposal\": 1, \"rejected\": 0}", 0 },
        { "{\"objects\": 2, \"found\": 3, \"no_proposal\": 0, \"rejected\": 0, "
          "\"suppressed\": 0}", 0 },
        { "{\"objects\": 2, \"found\": -1, \"no_proposal\": 0, \"rejected\": 0, "
          "\"suppressed\": 0}", 0 },
        { "{\"objects\": 2, \"found\": 1, \"no_proposal\": 1, \"rejected\": 0, "
          "\"suppressed\": 0, \"proposal_recall_50\": \"evil\", \"per_class\": 7}", 1 },
        { "{\"objects\": 2, \"found\": 1, \"no_proposal\": 1, \"rejected\": 0, "
          "\"suppressed\": 0, \"per_class\": {\"objects\": [1, \"evil\", 3, 4, 5], "
          "\"found\": {\"a\": 1}, \"no_proposal\": [1, 1, 1], \"rejected\": [0], "
          "\"suppressed\": []}}", 1 },
        { "{\"objects\": 2, \"found\": 1, \"no_proposal\": 1, \"rejected\": 0, "
          "\"suppressed\": 0, \"per_class\": {\"objects\": [1, 1], \"found\": [1, 1], "
          "\"no_proposal\": [0, 1e99], \"rejected\": [0, 0], \"suppressed\": [0, 0]}}", 2 },
    };
    char *folder = make_folder();

    (void)state;
    put_run(folder, "finished", 0.1);
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        put_stages_evaluation(folder, cases[i].stages);
        struct pm_str html = page_of(folder, false);
        char *card = strstr(html.text, "Where objects are lost");

        assert_int_equal(card != NULL, cases[i].rows > 0);
        if (card) {
            *strstr(card, "</table>") = '\0';
            assert_int_equal(count_text(strstr(card, "<tbody>"), "<tr"), cases[i].rows);
        }
        assert_null(strstr(html.text, "evil"));
        assert_null(strstr(html.text, "nan"));
        pm_str_free(&html);
    }
    drop_folder(folder);
}

/* With attention each letter has a line from its mark in the picture; with a transformer in the
 * straightened picture. Lists that do not fit the text draw nothing. */
static void marked_letters(void **state)
{
    static const struct { const char *sample; int lines; const char *part; } cases[] = {
        { "\"width\": 90, \"height\": 30, \"text\": \"a<\", \"attention\": [0.25, 0.5]", 2,
          "d=\"M25.00 0V20L25.00 68\"/><path class=\"rim\" d=\"M50.00 0V20\"/>" },
        /* The picture fills the middle third of its frame. */
        { "\"width\": 30, \"height\": 30, \"text\": \"\xc3\xa4\", \"attention\": [0]", 1,
          "d=\"M33.33 0V20L33.33 68\"/></svg><b class=\"k0\" style=\"left:33.33%\">\xc3\xa4</b>" },
        { "\"width\": 30, \"height\": 30, \"text\": \"a\", \"attention\": [1], \"beside\": "
          "[{\"what\": \"straight\", \"width\": 60, \"height\": 20, \"picture\": \"" DOT "\"}]", 1,
          "d=\"M100.00 0V20L97.25 68\"/></svg><b class=\"k0\" style=\"left:97.25%\">a</b></div>"
          "<p class=\"what\">straight</p>" },
        { "\"text\": \"ab\", \"attention\": [0.5]", 0, "<dd>ab</dd>" },
        { "\"text\": \"ab\", \"attention\": [0.5, \"x\"]", 0, "<dd>ab</dd>" },
        { "\"text\": \"ab\", \"attention\": 7", 0, "<dd>ab</dd>" },
        { "\"text\": \"\", \"attention\": []", 0, "<dd></dd>" },
        { "\"text\": \"ab\"", 0, "<dd>ab</dd>" },
        { "\"attention\": [0.5], \"width\": -1, \"height\": 1e99, \"beside\": [3]", 0, "<dd>" },
    };
    char *folder = make_folder();

    (void)state;
    put_run(folder, "finished", 0.1);
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_str json = { 0 };

        pm_str_add(&json, "{\"of\": \"texts\", \"step\": 9, \"count\": 2, \"samples\": "
                   "[{\"picture\": \"" DOT "\", %s}]}", cases[i].sample);
        put(folder, "evaluation.json", json.text);
        struct pm_str html = page_of(folder, false);

        assert_int_equal(count_text(html.text, "<path class=\"rim\""), cases[i].lines);
        assert_int_equal(count_text(html.text, "class=\"marks\""), cases[i].lines > 0);
        assert_contains(html.text, cases[i].part);
        assert_null(strstr(html.text, "<b class=\"k1\" style=\"left:50.00%\"><"));
        pm_str_free(&html);
        pm_str_free(&json);
    }
    drop_folder(folder);
}

/* Boxes without four numbers or with an unknown kind are left out; a picture whose address could
 * end the style is not shown. */
static void damaged_boxes(void **state)
{
    static const char *const texts[] = {
        "{\"of\": \"boxes\", \"per_class\": {\"count\": []}, \"samples\": [3, {}]}",
        "{\"of\": \"boxes\", \"per_class\": {\"count\": [1], \"ap\": {\"x\": 1}}, \"errors\": 3, "
        "\"curves\": {\"all\": {}, \"per_class\": [[\"x\", 1e99, -1, 0.5], 3]}, "
        "\"confusion\": [1, 1, 3, 2, 0, 1], \"threshold\": \"x\"}",
        "{\"of\": \"boxes\", \"per_class\": {\"count\": [1]}, \"errors\": {\"loose\": -3, "
        "\"missed\": \"x\"}, \"samples\": ["
        "{\"picture\": \"data:image/png;base64,x)} evil\", \"truth\": 5},"
        "{\"picture\": \"" DOT "\", \"width\": -1, \"height\": 1e99, \"truth\": ["
        "{\"box\": [0, 0, 1], \"label\": 0, \"kind\": \"right\"}, "
        "{\"box\": [0, 0, 1, \"1\"], \"label\": 0, \"kind\": \"right\"}, "
        "{\"box\": {\"a\": 1}, \"kind\": \"right\"}, 7, "
        "{\"box\": [0, 0, 1, 1], \"kind\": \"evil\"}, "
        "{\"box\": [0.5, 0.5, 0.25, 1e99], \"label\": 77, \"kind\": \"both\", \"score\": 1e99, "
        "\"rotated\": [0, 0, -1, 1]}], "
        "\"found\": {\"x\": 1}}]}",
    };
    char *folder = make_folder();

    (void)state;
    put_run(folder, "finished", 0.1);
    for (size_t i = 0; i < PM_COUNT(texts); i++) {
        put(folder, "evaluation.json", texts[i]);
        struct pm_str html = page_of(folder, false);
        assert_contains(html.text, "</html>");
        assert_null(strstr(html.text, "evil"));
        assert_null(strstr(html.text, "nan"));
        assert_int_equal(count_text(html.text, "<i class=\"bad\""), i == 2);
        assert_null(strstr(html.text, "<i class=\"good\""));
        pm_str_free(&html);
    }
    drop_folder(folder);
}

/* Counts that are too long for a cell are shown as shares of their row. */
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

/* Writes an evaluation under a file name. */
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
    /* The best evaluation is training's own. */
    assert_null(strstr(html.text, "<dt>Best accuracy</dt><dd>87.5"));
    pm_str_free(&html);
    /* The same evaluation made again replaces training's. */
    put_named(folder, "eval_test/evaluation-c.json", "validation", "data/x",
              "step-000600.safetensors", 0.5, 4);
    html = page_of(folder, false);
    assert_contains(html.text, "id=\"evaluation-0\">validation at step 600</h3>");
    assert_contains(html.text, "accuracy 50.00\xc2\xa0%");
    assert_null(strstr(html.text, "accuracy 62.50\xc2\xa0%"));
    assert_int_equal(count_text(html.text, "Confusion matrix</h3>"), 3);
    pm_str_free(&html);
    /* When training made no evaluation, the list shows the other evaluations. */
    put(folder, "metrics.jsonl", "");
    put(folder, "evaluation.json", "{\"step\": 5, \"count\": 7, \"metrics\": {\"miou\": 0.25}}");
    html = page_of(folder, false);
    assert_contains(html.text, "<th class=\"n\">miou</th>");
    assert_contains(html.text,
                    "7 pictures (the data folder and split are not recorded), miou 25.00");
    pm_str_free(&html);
    /* Evaluations without a section on the page are listed, too, without a link. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_run), cmocka_unit_test(one_thing_is_singular),
        cmocka_unit_test(parts_of_the_loss), cmocka_unit_test(thresholds),
        cmocka_unit_test(new_run),
        cmocka_unit_test(hostile_run),
        cmocka_unit_test(damaged_evaluation),
        cmocka_unit_test(counted_pixels),
        cmocka_unit_test(boxes),
        cmocka_unit_test(rotated_boxes),
        cmocka_unit_test(damaged_boxes),
        cmocka_unit_test(marked_letters),
        cmocka_unit_test(lost_objects),
        cmocka_unit_test(damaged_stages),
        cmocka_unit_test(large_counts),
        cmocka_unit_test(several_evaluations),
        cmocka_unit_test(thousand_classes),
    };

    return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
