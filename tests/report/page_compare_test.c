/* report.html of several runs: their differences side by side. */
#include "report/run_folder.h"

#include "report/page.h"

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
    assert_null(strstr(html.text, ">run.folder<"));      /* differs in every run */
    assert_null(strstr(html.text, ">schedule.warmup_steps<")); /* is the same in every run */
    assert_int_equal(count_text(html.text, "class=\"n best\" data-label=\"best "),
                     3); /* accuracy, recall_at_5, loss */
    /* Each of the six charts names the runs, in their order, colours and dashes. */
    assert_int_equal(count_text(html.text, " r2\" data-run=\"2\"><i></i>run2</li>"), 6);
    assert_contains(html.text, "<li class=\"c2 d2 r2\"");
    assert_true(strstr(html.text, "<i></i>run0</li>") < strstr(html.text, "<i></i>run1</li>"));
    assert_int_equal(count_text(html.text, "data-first=\"descending\">best accuracy"), 1);
    assert_int_equal(count_text(html.text, "data-first=\"ascending\">best loss"), 1);
    assert_contains(html.text, "path class=\"line c2 d2 r2\"");
    assert_contains(html.text, ">100\xc2\xa0%</span>"); /* shares end there, also those that are
                                                         * equal */
    assert_null(strstr(html.text, ">105\xc2\xa0%</span>"));
    assert_null(strstr(html.text, ">110\xc2\xa0%</span>"));
    /* The metric against the settings: that of run.json. */
    assert_contains(html.text, "Best accuracy against these settings");
    assert_contains(html.text, "accuracy by schedule.base_lr");
    assert_int_equal(count_text(html.text, "<path class=\"point"), 3);
    assert_int_equal(count_text(html.text, "class=\"point top\""), 1);
    assert_int_equal(count_text(html.text, "<path class=\"dot\""), 3);
    for (int i = 0; i < 3; i++)
        pm_report_close(&runs[i]);
    pm_str_free(&html);
    drop_folder(top);
}

/* Options that one of two optimizers has are no axes; equal runs and runs without an evaluation
 * have no figures. */
static void settings_with_figures(void **state)
{
    char *top = make_folder(), folder[3][512];
    struct pm_report *runs[3];
    struct pm_str html = { 0 };

    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(folder[i], sizeof folder[i], "%s/run%d", top, i);
        put_whole_run(folder[i], 4, 2 + i, 0.25);
        put(folder[i], "config.json",
            i ? "{\"optim\": {\"name\": \"sgd\"}}"
              : "{\"optim\": {\"name\": \"momentum\", \"momentum\": 0.9}}");
        runs[i] = pm_report_open(folder[i], false);
    }
    pm_report_page(runs, 3, &html);
    assert_contains(html.text, "<th scope=\"row\" role=\"rowheader\">optim.momentum</th>");
    assert_contains(html.text, "accuracy by optim.name");
    assert_null(strstr(html.text, "accuracy by optim.momentum"));
    pm_str_free(&html);
    html = (struct pm_str){ 0 };
    pm_report_page(runs + 1, 2, &html);
    assert_contains(html.text, "The runs differ only in their folders.");
    assert_null(strstr(html.text, "against these settings"));
    pm_str_free(&html);
    html = (struct pm_str){ 0 };
    for (int i = 0; i < 3; i++) {
        pm_report_close(&runs[i]);
        put(folder[i], "metrics.jsonl", "");
        runs[i] = pm_report_open(folder[i], false);
    }
    pm_report_page(runs, 3, &html);
    assert_null(strstr(html.text, "against these settings"));
    for (int i = 0; i < 3; i++)
        pm_report_close(&runs[i]);
    pm_str_free(&html);
    drop_folder(top);
}

/* Instances with COCO's metrics and edges have the most metrics. Each has a column and a chart,
 * and for a single run a curve that differs from all others. */
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
        snprintf(name, sizeof name, "data-label=\"best figure_%d\"", m);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparison),
        cmocka_unit_test(settings_with_figures),
        cmocka_unit_test(comparison_of_many_metrics),
    };

    return cmocka_run_group_tests_name("page compare", tests, NULL, NULL);
}
