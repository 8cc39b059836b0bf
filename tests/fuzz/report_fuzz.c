/* The files of a run folder that report.html shows: run.json, config.json, metrics.jsonl,
 * evaluation.json, log.txt and two evaluations of pumice eval, in this order, separated by the
 * byte 30. An eighth part is appended to metrics.jsonl between two readings, as by a run that
 * continues. For any contents, the page of one run, or with an eighth part of two runs, must be
 * complete and hold no script except its own. */
#include "fuzz.h"

#include <pumice/report.h>

static int count_of(const char *text, const char *word)
{
    int n = 0;

    for (; (text = strstr(text, word)) != NULL; text++)
        n++;
    return n;
}

static void look(struct pm_report *const *runs, int count)
{
    struct pm_str html = { 0 };

    pm_report_page(runs, count, &html);
    if (!strstr(html.text, "</html>") || strlen(html.text) != html.length)
        __builtin_trap();
    if (count_of(html.text, "<script") != 2 || count_of(html.text, "</script") != 2)
        __builtin_trap();
    pm_str_free(&html);
}

static void append(const char *path, const uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "ab");

    if (!f || (size && fwrite(data, 1, size, f) != size) || fclose(f) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "run.json", "config.json", "metrics.jsonl",
                                         "evaluation.json", "log.txt",
                                         "eval_test/evaluation-1.json",
                                         "eval_test/evaluation-2.json" };
    size_t at = 0;

    if (fuzz_begin() && pm_make_folders(fuzz_path("eval_test")) < 0)
        abort();
    fuzz_put_parts(names, PM_COUNT(names), data, size, &at);
    struct pm_report *runs[2] = { pm_report_open(fuzz_folder, false),
                                  pm_report_open(fuzz_folder, true) };
    pm_report_empty(runs[0]);
    if (at < size) {
        append(fuzz_path("metrics.jsonl"), data + at, size - at);
        pm_report_rest(runs[0]);
        pm_report_refresh(runs[0]);
    }
    look(runs, at < size ? 2 : 1);
    pm_report_close(&runs[0]);
    pm_report_close(&runs[1]);
    return 0;
}
