/* report.html of a study: hand-made folders, complete, running, damaged and hostile. */
#include "report/run_folder.h"
#include "report/study_folder.h"

#include "report/axes.h"
#include "report/page.h"

static struct pm_study_report *open_study(const char *folder)
{
    struct pm_study_report *s = NULL;

    assert_int_equal(pm_study_report_open(folder, &s), PM_OK);
    return s;
}

static struct pm_str study_page(const char *folder, bool live, bool (*is_training)(const char *))
{
    struct pm_study_report *s = open_study(folder);
    struct pm_str html = { 0 };

    pm_study_page(s, live, is_training, &html);
    pm_study_report_close(&s);
    /* Every page is complete and loads nothing. */
    assert_contains(html.text, "</body></html>");
    assert_int_equal(count_text(html.text, "<script"), 2);
    assert_null(strstr(html.text, "http:"));
    assert_null(strstr(html.text, "https:"));
    assert_null(strstr(html.text, "nan"));
    return html;
}

/* ---- rows -------------------------------------------------------------------------------- */

static void points_have_ranks(void **state)
{
    char *folder = make_folder();

    (void)state;
    put_study(folder);
    struct pm_study_report *s = open_study(folder);
    assert_int_equal(s->points, 3);
    assert_int_equal(s->runs_done, 6);
    assert_int_equal(s->runs_failed, 1);
    assert_true(s->seconds == 40);
    /* The one that was trained further is first, though its mean is lower. */
    assert_string_equal(s->rows[0].name, "lr=0.01");
    assert_int_equal(s->rows[0].step, 60);
    assert_int_equal(s->rows[0].runs, 2);
    assert_true(fabs(s->rows[0].mean - 0.6) < 1e-15);
    assert_true(fabs(s->rows[0].spread - sqrt(0.02)) < 1e-15);
    assert_string_equal(s->rows[1].name, "lr=0.001");
    assert_true(s->rows[1].mean == 0.75 && s->rows[1].spread == 0);
    assert_string_equal(s->rows[2].name, "lr=0.1");
    assert_int_equal(s->rows[2].failed, 1);
    assert_true(s->rows[2].mean == 0.25 && s->rows[2].spread == 0);
    assert_string_equal(s->rows[2].message, "not finite <b>");
    pm_study_report_close(&s);
    drop_folder(folder);
}

/* Step 0 is the end of a run, which is further than any step. Of equal points the first is better.
 * Points without a value are the last ones. */
static void ends_and_equal_points(void **state)
{
    char *folder = make_folder();

    (void)state;
    put(folder, "study.json", "{\"metric\": \"loss\", \"higher_is_better\": false, \"points\": "
        "[{\"name\": \"a\"}, {\"name\": \"b\"}, {\"name\": \"c\"}, {\"name\": \"d\"}, "
        "{\"name\": \"e\"}, {\"name\": \"f\"}]}");
    put(folder, "study.jsonl",
        "{\"point\": \"e\", \"repeat\": 0, \"step\": 0, \"loss\": 1}\n"
        "{\"point\": \"c\", \"repeat\": 0, \"step\": 0, \"loss\": 1}\n"
        "{\"point\": \"b\", \"repeat\": 0, \"step\": 500, \"loss\": 0.1}\n"
        "{\"point\": \"d\", \"repeat\": 0, \"step\": 0, \"error\": \"x\"}\n"
        "{\"point\": \"f\", \"repeat\": 0, \"step\": 0, \"loss\": 0.5}\n");
    struct pm_study_report *s = open_study(folder);
    struct pm_str order = { 0 };
    for (int i = 0; i < s->points; i++)
        pm_str_add(&order, "%s", s->rows[i].name);
    assert_string_equal(order.text, "fcedba");
    pm_str_free(&order);
    pm_study_report_close(&s);
    drop_folder(folder);
}

static void foreign_files(void **state)
{
    static const char *const studies[] = {
        "{}", "{\"points\": 3}", "{\"points\": {\"a\": 1}, \"vary\": [1]}",
        "{\"points\": [1, \"a\", null, {}, {\"name\": 4, \"values\": []}], \"repeats\": -3}",
        "{\"metric\": [], \"repeats\": 1e300, \"seed\": \"x\", \"points\": [{\"name\": \"a\", "
        "\"values\": {\"k\": [1, {\"x\": null}], \"l\": true, \"m\": 1e999}}]}",
        "{\"metric\": \"m\", \"vary\": {\"k\": null, \"l\": [{}, [], {\"name\": {}}], \"m\": "
        "{\"log_uniform\": 3}}, \"points\": [{\"name\": \"a\", \"values\": {\"k\": null}}, "
        "{\"name\": \"b\", \"values\": {\"k\": -1, \"l\": {\"name\": \"z\"}, \"m\": -5}}, "
        "{\"name\": \"../..\", \"values\": {\"k\": 1, \"m\": 5}}]}",
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(studies); i++) {
        char *folder = make_folder();
        struct pm_study_report *s = NULL;

        put(folder, "study.json", studies[i]);
        put(folder, "study.jsonl",
            "\n[]\n3\n{\"point\": 3}\n{\"point\": \"a\"}\nrubbish\n"
            "{\"point\": \"a\", \"repeat\": 0, \"step\": -4, \"m\": 1}\n"
            "{\"point\": \"a\", \"repeat\": 7, \"step\": 4, \"m\": 1}\n"
            "{\"point\": \"a\", \"repeat\": 0, \"step\": 4, \"m\": \"much\"}\n"
            "{\"point\": \"unknown\", \"repeat\": 0, \"step\": 4, \"m\": 1}\n"
            "{\"point\": \"b\", \"repeat\": 0, \"step\": 4, \"m\": 2, \"seconds\": \"x\"}\n"
            "{\"point\": \"../..\", \"repeat\": 0, \"step\": 4, \"m\": 3}\n");
        struct pm_str html = study_page(folder, false, NULL);
        assert_contains(html.text, "id=\"points\"");
        assert_contains(html.text, "id=\"best\"");
        pm_str_free(&html);
        assert_int_equal(pm_study_report_open(folder, &s), PM_OK);
        assert_int_equal(s->runs_done, i == 5 ? 2 : 0);
        pm_study_report_close(&s);
        drop_folder(folder);
    }
}

static void no_study(void **state)
{
    static const char *const texts[] = { "", "[]", "{\"points\": [", "null" };
    char *folder = make_folder();
    struct pm_study_report *s = NULL;

    (void)state;
    assert_false(pm_is_study(folder));
    for (size_t i = 0; i < PM_COUNT(texts); i++) {
        put(folder, "study.json", texts[i]);
        assert_true(pm_is_study(folder));
        assert_int_equal(pm_study_report_open(folder, &s), PM_EDATA);
        assert_contains(pm_error_text(), "study.json: ");
        assert_null(s);
    }
    drop_folder(folder);
}

/* ---- pages ------------------------------------------------------------------------------- */

static void page_of_a_study(void **state)
{
    char *folder = make_folder(), path[512];

    (void)state;
    put_study(folder);
    put(folder, "best.json", "{ \"task\": \"<classification>\" }\n");
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/lr=0.01,seed=%d", folder, 5 + i);
        put_whole_run(path, 4, 2 + i, 0.01);
    }
    struct pm_str html = study_page(folder, false, NULL);
    for (const char *const *part = (const char *const[]){
             ">Study</p>", "finished", "<b>6</b> of 6 runs have a result", ">60.00\xc2\xa0%<",
             "1 failed: not finite &lt;b&gt;</small>", "data-first=\"descending\">accuracy</th>",
             "data-label=\"spread\" data-v=\"0.141421356\">14.14\xc2\xa0%</td>",
             "data-label=\"optim\">adamw<small>beta1 0.9</small></td>",
             "accuracy by schedule.base_lr", "accuracy by optim<", "accuracy by optim.beta1<",
             "<title>lr=0.01: accuracy 60.00\xc2\xa0% \xc2\xb1 14.14\xc2\xa0%</title>",
             "lr=0.01,seed=5</li>", "lr=0.01,seed=6</li>", "class=\"point top\"",
             "<pre tabindex=\"0\">{ &quot;task&quot;: &quot;&lt;classification&gt;&quot; }",
             "A point that was ended early has the accuracy of its last step.", NULL };
         *part; part++)
        assert_contains(html.text, *part);
    assert_contains(html.text, "/best.json</code>");
    assert_int_equal(count_text(html.text, "<path class=\"point"), 3);
    assert_int_equal(count_text(html.text, "<path class=\"dot\""), 9);
    assert_int_equal(count_text(html.text, "<path class=\"spread\""), 3);
    assert_int_equal(count_text(html.text, "\xe2\x98\x85"), 1);
    /* The axis of the rate is logarithmic: 0.01 is in the middle. */
    assert_contains(html.text, "d=\"M0 500");
    pm_str_free(&html);
    drop_folder(folder);
}

static bool all_train(const char *run)
{
    return pm_is_folder(run);
}

static void running_and_stopped(void **state)
{
    char *folder = make_folder(), path[512];

    (void)state;
    put_study(folder);
    struct pm_str html = study_page(folder, false, NULL);
    assert_contains(html.text, "class=\"state stopped\"");
    assert_contains(html.text, "best.json is written when the study ends.");
    assert_contains(html.text, "No run has a folder yet.");
    pm_str_free(&html);
    html = study_page(folder, true, NULL);
    assert_contains(html.text, "class=\"state running\"");
    assert_contains(html.text, "{\"live\":true");
    pm_str_free(&html);
    snprintf(path, sizeof path, "%s/lr=0.1,seed=5", folder);
    put_whole_run(path, 4, 2, 0.1);
    html = study_page(folder, false, all_train);
    assert_contains(html.text, "class=\"state running\"");
    assert_contains(html.text, "<dt>Training now</dt><dd>1<small>run</small>");
    pm_str_free(&html);
    put(folder, "study.jsonl", "");
    html = study_page(folder, false, NULL);
    assert_contains(html.text, "No point has a result yet.");
    assert_contains(html.text, "<b>0</b> of 6 runs");
    pm_str_free(&html);
    put(folder, "study.jsonl",
        "{\"point\": \"lr=0.1\", \"repeat\": 0, \"step\": 20, \"error\": \"out of memory\"}\n");
    html = study_page(folder, false, NULL);
    assert_contains(html.text, "class=\"state failed\"");
    assert_contains(html.text, "1 failed: out of memory");
    pm_str_free(&html);
    drop_folder(folder);
}

static void one_point(void **state)
{
    char *folder = make_folder();

    (void)state;
    put(folder, "study.json", "{\"metric\": \"loss\", \"points\": [{\"name\": \"n=1\", \"values\": "
        "{\"n\": 1}}]}");
    put(folder, "study.jsonl", "{\"point\": \"n=1\", \"repeat\": 0, \"step\": 3, \"loss\": 0}\n");
    struct pm_str html = study_page(folder, false, NULL);
    assert_contains(html.text, "one run each");
    assert_int_equal(count_text(html.text, "<path class=\"dot\""), 1);
    assert_null(strstr(html.text, "data-label=\"spread\""));
    assert_null(strstr(html.text, "inf"));
    pm_str_free(&html);
    drop_folder(folder);
}

/* Everything that comes from the files is text. */
static void names_are_escaped(void **state)
{
    char *folder = make_folder();

    (void)state;
    put(folder, "study.json",
        "{\"metric\": \"<i>m\\\"\", \"higher_is_better\": true, \"points\": ["
        "{\"name\": \"<script>alert(1)</script>\", \"values\": {\"<k>'\": \"<v>\\\"\"}}, "
        "{\"name\": \"b&\", \"values\": {\"<k>'\": {\"name\": \"<n>\", \"<o>\": \"<p>\"}}}]}");
    put(folder, "study.jsonl",
        "{\"point\": \"<script>alert(1)</script>\", \"repeat\": 0, \"step\": 3, "
        "\"<i>m\\\"\": 0.5}\n"
        "{\"point\": \"b&\", \"repeat\": 0, \"step\": 3, \"error\": \"<e>\"}\n");
    put(folder, "best.json", "</pre><script>1</script>");
    struct pm_str html = study_page(folder, false, NULL);
    for (const char *const *bad = (const char *const[]){ "<script>a", "<i>m", "<k>", "<v>", "<n>",
                                                         "<o>", "<p>\"", "<e>", "</pre><s", "b&<",
                                                         "b&\"", NULL };
         *bad; bad++)
        if (strstr(html.text, *bad))
            fail_msg("'%s' is not escaped", *bad);
    assert_contains(html.text, "&lt;script&gt;alert(1)&lt;/script&gt;");
    assert_contains(html.text, "&lt;v&gt;&quot;");
    pm_str_free(&html);
    drop_folder(folder);
}

/* 40 points with long names, each with a run folder: the curves are those of the best 32. */
static void many_points(void **state)
{
    char *folder = make_folder(), path[512];
    struct pm_str points = { 0 }, lines = { 0 };

    (void)state;
    pm_str_add(&points, "{\"metric\": \"accuracy\", \"higher_is_better\": true, \"points\": [");
    for (int i = 0; i < 40; i++) {
        snprintf(path, sizeof path, "a_rather_long_name_of_a_key_of_the_config=%d,"
                 "another_key_with_a_name_as_long=a_value_with_a_name_%d", i, i % 3);
        pm_str_add(&points, "%s{\"name\": \"%s\", \"values\": {\"n\": %d, \"t\": \"a value with a "
                   "long name %d\"}}", i ? ", " : "", path, i, i % 3);
        pm_str_add(&lines, "{\"point\": \"%s\", \"repeat\": 0, \"step\": 9, \"accuracy\": %g}\n",
                   path, i / 50.0);
        char run[1024];
        snprintf(run, sizeof run, "%s/%s", folder, path);
        assert_int_equal(pm_make_folders(run), 0);
        put_run(run, "finished", 0.1);
    }
    pm_str_add(&points, "]}");
    put(folder, "study.json", points.text);
    put(folder, "study.jsonl", lines.text);
    struct pm_str html = study_page(folder, false, NULL);
    assert_int_equal(count_text(html.text, "<tr role=\"row\" data-run="), 40);
    assert_int_equal(count_text(html.text, "<path class=\"point"), 40);
    assert_contains(html.text, "These are the runs of the best points: 32 of 40.");
    assert_contains(html.text, "class=\"scroll tall\"");
    assert_true(strstr(html.text, "config=39,<wbr>") < strstr(html.text, "config=38,<wbr>"));
    pm_str_free(&html);
    pm_str_free(&points);
    pm_str_free(&lines);
    drop_folder(folder);
}

/* ---- axes -------------------------------------------------------------------------------- */

static struct pm_axis *axis_of(struct pm_axes *a, const char *values, enum pm_axis_kind kind,
                               const char *entries)
{
    cJSON *list = cJSON_Parse(values), *e = entries ? cJSON_Parse(entries) : NULL;
    const cJSON *v[8];

    assert_non_null(list);
    a->points = 0;
    for (const cJSON *i = list->child; i; i = i->next)
        v[a->points++] = cJSON_IsString(i) && !*i->valuestring ? NULL : i;
    pm_axes_add(a, "k", v, kind, e);
    cJSON_Delete(list);
    cJSON_Delete(e);
    return &a->list[a->count - 1];
}

static void axes_have_scales(void **state)
{
    struct pm_axes a = { 0 };
    struct pm_axis *x = axis_of(&a, "[1, 10, 4]", PM_AXIS_AUTO, NULL);

    (void)state;
    assert_true(x->numbers && !x->scale.log); /* a factor of 10, not more */
    x = axis_of(&a, "[1, 100, 10]", PM_AXIS_AUTO, NULL);
    assert_true(x->numbers && x->scale.log);
    assert_true(fabs(x->at[2] - 500) < 1e-9);
    assert_int_equal(x->labels_count, 3);
    assert_string_equal(x->labels[1], "100");
    x = axis_of(&a, "[0, 100]", PM_AXIS_AUTO, NULL); /* 0 has no logarithm */
    assert_true(x->numbers && !x->scale.log);
    x = axis_of(&a, "[1, 100]", PM_AXIS_LINEAR, NULL);
    assert_false(x->scale.log);
    x = axis_of(&a, "[1, 2]", PM_AXIS_LOG, NULL);
    assert_true(x->scale.log);
    x = axis_of(&a, "[-1, 2]", PM_AXIS_LOG, NULL);
    assert_false(x->scale.log);
    x = axis_of(&a, "[1, \"\", 3]", PM_AXIS_AUTO, NULL); /* one lacks the key: below the others */
    assert_true(x->numbers && x->at[1] == 0 && x->at[0] == 150 && x->at[2] == 1000);
    x = axis_of(&a, "[7, 7]", PM_AXIS_AUTO, NULL);
    assert_true(!x->numbers && x->at[0] == 500 && x->labels_count == 1);
    x = axis_of(&a, "[\"b\", \"a\", \"b\", \"c\"]", PM_AXIS_AUTO, NULL);
    assert_true(!x->numbers && x->at[0] == 0 && x->at[1] == 500 && x->at[2] == 0 &&
                x->at[3] == 1000);
    x = axis_of(&a, "[{\"name\": \"b\", \"x\": 0.1}, {\"name\": \"a\"}, {\"name\": \"b\", "
                "\"x\": 0.2}]", PM_AXIS_AUTO, "[{\"name\": \"a\"}, {\"name\": \"c\"}, {\"name\": "
                "\"b\", \"x\": {\"uniform\": [0, 1]}}]"); /* in the order of the list */
    assert_int_equal(x->labels_count, 2);
    assert_string_equal(x->labels[0], "a");
    assert_string_equal(x->labels[1], "b");
    x = axis_of(&a, "[{\"name\": \"a\", \"x\": 1}, {\"name\": \"a\"}]", PM_AXIS_AUTO,
                "[{\"name\": \"a\", \"x\": 1}, {\"name\": \"a\"}]"); /* the name does not tell */
    assert_string_equal(x->labels[0], "{\"name\":\"a\",\"x\":1}");
    assert_int_equal(x->labels_count, 2);
    pm_axes_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_have_ranks),
        cmocka_unit_test(ends_and_equal_points),
        cmocka_unit_test(foreign_files),
        cmocka_unit_test(no_study),
        cmocka_unit_test(page_of_a_study),
        cmocka_unit_test(running_and_stopped),
        cmocka_unit_test(one_point),
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(many_points),
        cmocka_unit_test(axes_have_scales),
    };

    return cmocka_run_group_tests_name("page study", tests, NULL, NULL);
}
