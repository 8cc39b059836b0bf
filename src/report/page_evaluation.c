/* page_evaluation: the results of evaluations. Each evaluation is identified by checkpoint, data
 * folder and split. It has sample pictures, frequent confusions, a confusion matrix, and precision
 * and recall per class. Counts are of pictures or, if evaluation.json says so ("of"), of pixels or
 * of boxes: one row of `kinds` each. */
#include "report/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8 /* evaluations with pictures */, CONFUSIONS = 16, SAMPLES = 24,
       FILTERED = 20 /* with more classes the table has a filter */,
       ON_PAPER = 40 /* rows that page.css lets stand */ };

/* ---- sample pictures --------------------------------------------------------------------- */

static const char *class_name(const struct result *r, const cJSON *sample, const char *member,
                              char buf[PM_TEXT])
{
    const double label = pm_json_number_of(sample, member);

    if (label >= 0 && label < r->classes)
        return r->names[(int)label];
    return pm_text_count(label, buf);
}

void pm_page_sample_file(struct pm_str *html, const cJSON *sample)
{
    const char *file = pm_json_text_of(sample, "file");
    const double record = pm_json_number_of(sample, "record");

    if (file)
        PM_HTML(html, "<p class=\"file\" title=\"{}\">{}</p>", file, file);
    else if (record >= 0)
        PM_HTML(html, "<p class=\"file\">record {}</p>", PM_COUNT_TEXT(record));
}

static void write_labelled(struct pm_str *html, const struct result *r, const cJSON *sample)
{
    const char *picture = pm_json_text_of(sample, "picture");
    const bool right = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(sample, "right"));
    const double probability = pm_json_number_of(sample, "probability");
    const double width = pm_json_number_of(sample, "width");
    char label[PM_TEXT], predicted[PM_TEXT];
    const char *truth = class_name(r, sample, "label", label);
    const char *answer = class_name(r, sample, "predicted", predicted);

    if (!picture || strncmp(picture, "data:image/", 11) != 0)
        return;
    PM_HTML(html,
            "<li class=\"sample {}\"><img src=\"{}\" class=\"{}\" loading=\"lazy\" alt=\"{}\">",
            right ? "right" : "wrong", picture, width < 96 ? "small" : "", truth);
    pm_page_sample_file(html, sample);
    PM_HTML(html, "<div class=\"verdict\"><b>{}</b></div>",
            right ? "\xe2\x9c\x93 right" : "\xe2\x9c\x95 wrong");
    PM_HTML(html, "<dl><div><dt>is</dt><dd title=\"{}\">{}</dd></div>", truth, truth);
    PM_HTML(html, "<div><dt>predicted</dt><dd title=\"{}\">{}</dd></div></dl>", answer, answer);
    pm_str_add(html, "<div class=\"sure\"><i style=\"width:%.1f%%\"></i></div>",
               isfinite(probability) ? 100 * fmin(1, fmax(0, probability)) : 0);
    PM_HTML(html, "<p class=\"sureness\">{} sure", PM_PERCENT(probability));
    if (!right && isfinite(pm_json_number_of(sample, "label_probability")))
        PM_HTML(html, ", {} for the true class",
                PM_PERCENT(pm_json_number_of(sample, "label_probability")));
    pm_html_raw(html, "</p></li>\n");
}

static void write_panel(struct pm_str *html, const cJSON *picture, const char *what)
{
    const char *address = pm_json_text_of(picture, "picture");

    if (!address || strncmp(address, "data:image/", 11) != 0)
        return;
    PM_HTML(html, "<figure><img src=\"{}\" class=\"{}\" loading=\"lazy\" alt=\"{}\">"
            "<figcaption>{}</figcaption></figure>", address,
            pm_json_number_of(picture, "width") < 96 ? "small" : "", what, what);
}

/* The picture, its label and the prediction, side by side. */
static void write_painted(struct pm_str *html, const struct result *r, const cJSON *sample)
{
    const double accuracy = pm_json_number_of(sample, "pixel_accuracy");
    const cJSON *beside;

    (void)r;
    pm_html_raw(html, "<li class=\"sample painted right\"><div class=\"panels\">");
    write_panel(html, sample, "picture");
    cJSON_ArrayForEach(beside, cJSON_GetObjectItemCaseSensitive(sample, "beside"))
    {
        const char *what = pm_json_text_of(beside, "what");

        write_panel(html, beside, what ? what : "");
    }
    pm_html_raw(html, "</div>");
    pm_page_sample_file(html, sample);
    pm_str_add(html, "<div class=\"sure\"><i style=\"width:%.1f%%\"></i></div>",
               isfinite(accuracy) ? 100 * fmin(1, fmax(0, accuracy)) : 0);
    PM_HTML(html, "<p class=\"sureness\">{} of the pixels right</p></li>\n", PM_PERCENT(accuracy));
}

static const struct kind kinds[] = {
    { NULL, "pictures",
      "First wrong predictions, those with the largest error of all evaluated pictures; then "
      "random correct ones.",
      "samples", "Precision: share of the predictions of this class that are correct. Recall: "
                 "share of the pictures of this class that are predicted as it. F1 (the bar): "
                 "harmonic mean of both.", "F1", write_labelled },
    { "pixels", "pixels",
      "First the pictures with the most wrong pixels of all evaluated pictures; then random ones. "
      "Ignored pixels have the colour of their label.",
      "samples wide", "Precision: share of the pixels predicted as this class that are correct. "
                      "Recall: share of the pixels of this class that are predicted as it. IoU "
                      "(the bar): intersection over union.",
      "IoU", write_painted },
    { .of = "texts", .unit = "texts", .list = "samples texts",
      .samples = "The texts with the largest edit distance, in relation to their length. With "
                 "attention, the line of a letter leads to the place that the net looked at.",
      .write_sample = pm_page_texts_sample },
    { .of = "boxes", .unit = "boxes", .list = "samples boxes",
      .samples = "First the pictures with the most errors; then random ones without an error. "
                 "Left: the ground truth; objects that were not found are dashed. Right: the "
                 "detections; false ones are dashed. Ignored objects, and detections on them, are "
                 "dotted.",
      .write_sample = pm_page_boxes_sample, .background = true,
      .write_cards = pm_page_boxes_cards, .write_classes = pm_page_boxes_classes },
};

static const struct kind *kind_of(const cJSON *evaluation)
{
    const char *of = pm_json_text_of(evaluation, "of");

    for (size_t i = 1; of && i < PM_COUNT(kinds); i++)
        if (strcmp(of, kinds[i].of) == 0)
            return &kinds[i];
    return &kinds[0];
}

static bool is_color(const char *text)
{
    return text && text[0] == '#' && strlen(text) == 7 && strspn(text + 1, "0123456789abcdef") == 6;
}

/* The legend of the drawn classes: those that occur in the evaluation. */
static void write_legend(struct pm_str *html, const struct result *r)
{
    const cJSON *color = cJSON_GetObjectItemCaseSensitive(r->evaluation, "colors");
    int k = 0;

    if (!cJSON_IsArray(color))
        return;
    pm_html_raw(html, "<ul class=\"legend swatches\">");
    for (color = color->child; color && k < r->classes; color = color->next, k++)
        if (is_color(color->valuestring) && (r->count[k] > 0 || r->predicted[k] > 0))
            PM_HTML(html, "<li><i style=\"background:{}\"></i>{}</li>", color->valuestring,
                    r->names[k]);
    pm_html_raw(html, "</ul>\n");
}

static void write_samples(struct pm_str *html, const struct result *r)
{
    const cJSON *samples = cJSON_GetObjectItemCaseSensitive(r->evaluation, "samples"), *sample;
    int n = 0;

    if (cJSON_GetArraySize(samples) == 0)
        return;
    PM_HTML(html, "<h3>Pictures</h3><p class=\"note\">{}</p>", r->kind->samples);
    write_legend(html, r);
    PM_HTML(html, "<ul class=\"{}\">\n", r->kind->list);
    cJSON_ArrayForEach(sample, samples) if (n++ < SAMPLES)
        r->kind->write_sample(html, r, sample);
    pm_html_raw(html, "</ul>\n");
}

/* ---- who is taken for whom --------------------------------------------------------------- */

static void write_confusions(struct pm_str *html, const struct result *r)
{
    int shown = 0;

    for (int i = 0; i < r->cells_count && shown < CONFUSIONS; i++) {
        const struct cell *c = &r->cells[i];

        if (c->truth == c->predicted)
            continue;
        if (shown++ == 0)
            PM_HTML(html, "<div class=\"card\"><h3>Most frequent mistakes</h3>"
                    "<div class=\"scroll\"><table class=\"rows\"><thead><tr><th>true class</th>"
                    "<th>predicted</th><th class=\"n\">times</th><th class=\"n\">of its {}"
                    "</th></tr></thead><tbody>\n", r->kind->unit);
        PM_HTML(html,
                "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                r->names[c->truth], r->names[c->predicted], PM_COUNT_TEXT(c->count),
                PM_PERCENT(pm_result_share(c->count, r->count[c->truth])));
    }
    if (shown)
        pm_html_raw(html, "</tbody></table></div></div>\n");
}

/* ---- classes ----------------------------------------------------------------------------- */

struct standing {
    double precision, recall, score; /* NAN: not known */
    double bar;                   /* the score of this kind, or recall if it is unknown; sort key */
    int index;
};

/* The worst first. */
static int by_bar(const void *a, const void *b)
{
    const struct standing *x = a, *y = b;

    if (x->bar != y->bar)
        return x->bar < y->bar ? -1 : 1;
    return x->index - y->index;
}

/* Classes that have pictures; returns their number. */
static int read_standings(const struct result *r, struct standing *list)
{
    int n = 0;

    for (int i = 0; i < r->classes; i++)
        if (r->count[i] > 0) {
            const double recall = pm_result_share(r->right[i], r->count[i]);
            const double either = r->count[i] + r->predicted[i];
            const double score = r->kind->of ? pm_result_share(r->right[i], either - r->right[i])
                                             : pm_result_share(2 * r->right[i], either);

            list[n++] =
                (struct standing){ .index = i,
                                   .recall = recall,
                                   .score = score,
                                   .precision = pm_result_share(r->right[i], r->predicted[i]),
                                   .bar = isfinite(score) ? score : recall };
        }
    qsort(list, (size_t)n, sizeof *list, by_bar);
    return n;
}

static void write_class(struct pm_str *html, const struct result *r, const struct standing *s)
{
    PM_HTML(html, "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
            "<td class=\"n\">{}</td><td class=\"n\">{}</td>", r->names[s->index],
            PM_COUNT_TEXT(r->count[s->index]), PM_PERCENT(s->precision), PM_PERCENT(s->recall),
            PM_PERCENT(s->score));
    pm_str_add(html, "<td class=\"bars\"><i style=\"width:%.1f%%\"></i></td></tr>\n", 100 * s->bar);
}

void pm_page_classes_open(struct pm_str *html, const struct result *r, const char *id,
                          const char *label, int classes)
{
    if (classes > FILTERED)
        PM_HTML(html, "<input type=\"search\" class=\"filter\" data-filter=\"{}-{}\" hidden "
                "placeholder=\"Find a class\" aria-label=\"Find a class\">", id,
                PM_COUNT_TEXT(r->index));
    PM_HTML(html, "<div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">"
            "<table class=\"rows classes\" id=\"{}-{}\"><thead><tr><th>class</th>", label, id,
            PM_COUNT_TEXT(r->index));
}

void pm_page_classes_close(struct pm_str *html, int classes, int others)
{
    pm_html_raw(html, "</tbody></table></div>");
    if (classes + others > ON_PAPER)
        PM_HTML(html, "<p class=\"note on-paper\">On paper the {} worst only.</p>",
                PM_COUNT_TEXT(ON_PAPER - others));
}

static void write_classes(struct pm_str *html, const struct result *r)
{
    struct standing *list = pm_calloc((size_t)r->classes + 1, sizeof *list);
    const int n = read_standings(r, list);

    PM_HTML(html, "<div class=\"card\"><h3>Classes</h3><p class=\"note\">The worst first. {}</p>",
            r->kind->classes);
    pm_page_classes_open(html, r, "classes", "Precision and recall by class", n);
    PM_HTML(html, "<th class=\"n\">{}</th><th class=\"n\">precision</th><th class=\"n\">recall</th>"
            "<th class=\"n\">{}</th><th class=\"bars\"></th></tr></thead><tbody>\n",
            r->kind->unit, r->kind->score);
    for (int i = 0; i < n; i++)
        write_class(html, r, &list[i]);
    pm_page_classes_close(html, n, 0);
    if (n < r->classes)
        PM_HTML(html, "<p class=\"note\">{} {} on no picture of this evaluation.</p>",
                PM_COUNT_TEXT(r->classes - n),
                pm_plural(r->classes - n, "class is", "classes are"));
    pm_html_raw(html, "</div>\n");
    pm_free(list);
}

/* ---- one evaluation ---------------------------------------------------------------------- */

/* Reports pictures with logits that are not finite. */
static void write_unanswered(struct pm_str *html, const cJSON *evaluation)
{
    const double n = pm_json_number_of(evaluation, "unanswered");

    if (n > 0)
        PM_HTML(html,
                "<p class=\"note\">{} of them got no answer: the net's values were not finite. {} "
                "as wrong. The matrix does not include {}.</p>", PM_COUNT_TEXT(n),
                pm_plural(n, "It counts", "They count"), pm_plural(n, "it", "them"));
}

static bool has_details(const cJSON *evaluation)
{
    return cJSON_GetObjectItemCaseSensitive(evaluation, "per_class") ||
           cJSON_GetObjectItemCaseSensitive(evaluation, "samples");
}

/* Its section's heading: "test at step 600, best checkpoint". */
static void add_title(struct pm_str *html, const cJSON *evaluation)
{
    const char *split = pm_json_text_of(evaluation, "split");
    const char *checkpoint = pm_json_text_of(evaluation, "checkpoint");
    const char *file = checkpoint ? strrchr(checkpoint, '/') : NULL;

    PM_HTML(html, "{} at step {}", split ? split : "Evaluation",
            PM_COUNT_TEXT(pm_json_number_of(evaluation, "step")));
    if (file && strncmp(file, "/best-", 6) == 0)
        pm_html_raw(html, ", best checkpoint");
}

/* "accuracy 98 %, loss 0.05" */
static void add_metrics(struct pm_str *html, const cJSON *evaluation)
{
    const cJSON *m;
    char text[PM_TEXT];

    cJSON_ArrayForEach(m, cJSON_GetObjectItemCaseSensitive(evaluation, "metrics"))
    {
        const bool share = cJSON_IsNumber(m) && m->valuedouble >= 0 && m->valuedouble <= 1 &&
                           m->string && !strstr(m->string, "loss");

        if (cJSON_IsNumber(m) && m->string)
            PM_HTML(html, ", {} {}", m->string, pm_report_value(m->valuedouble, share, text));
    }
}

/* "78 pictures of data/x, split validation, checkpoint best-000600.safetensors: accuracy 98 %" */
static void write_which(struct pm_str *html, const cJSON *evaluation)
{
    const char *data = pm_json_text_of(evaluation, "data");
    const char *split = pm_json_text_of(evaluation, "split");
    const char *checkpoint = pm_json_text_of(evaluation, "checkpoint");
    const char *written = pm_json_text_of(evaluation, "written");

    const double count = pm_json_number_of(evaluation, "count");

    PM_HTML(html, "<p class=\"note\">{} {}", PM_COUNT_TEXT(count),
            pm_plural(count, "picture", "pictures"));
    if (data && split)
        PM_HTML(html, " of {}, split {}", data, split);
    else
        pm_html_raw(html, " (the data folder and split are not recorded)");
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(evaluation, "in_training")))
        pm_html_raw(html, ", evaluated while training");
    else if (checkpoint)
        PM_HTML(html, ", {}", checkpoint);
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(evaluation, "averages")))
        pm_html_raw(html, ", moving averages");
    add_metrics(html, evaluation);
    if (written)
        PM_HTML(html, ". Written {}", written);
    pm_html_raw(html, ".</p>\n");
}

static void write_evaluation(struct pm_str *html, struct pm_str *json, struct pm_str *cells,
                             const cJSON *evaluation, int index)
{
    struct result result;

    pm_str_add(html, "<h3 class=\"which\" id=\"evaluation-%d\">", index);
    add_title(html, evaluation);
    pm_html_raw(html, "</h3>\n");
    write_which(html, evaluation);
    if (!has_details(evaluation))
        return;
    pm_result_read(&result, evaluation, kind_of(evaluation), index);
    write_unanswered(html, evaluation);
    write_samples(html, &result);
    if (result.classes > 0) {
        pm_html_raw(html, "<div class=\"charts\">\n");
        if (result.kind->write_cards)
            result.kind->write_cards(html, json, &result);
        pm_page_matrix(html, cells, &result);
        write_confusions(html, &result);
        if (result.kind->write_classes)
            result.kind->write_classes(html, &result);
        else
            write_classes(html, &result);
        pm_html_raw(html, "</div>\n");
    }
    pm_result_free(&result);
}

/* ---- the section ------------------------------------------------------------------------- */

/* The metric that decides, else the first of the first evaluation. */
static const char *listed_metric(const struct pm_report *r)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(r->evaluations[0], "metrics");
    const char *metric = pm_report_metric(r);

    return metric ? metric : cJSON_IsObject(m) && m->child ? m->child->string : "accuracy";
}

/* Lists the evaluations, with their metrics, if there are several. */
static void write_list(struct pm_str *html, const struct pm_report *r)
{
    const char *metric = listed_metric(r);
    char text[PM_TEXT];

    pm_html_raw(html, "<div class=\"card\"><div class=\"scroll\"><table class=\"rows\"><thead><tr>"
                      "<th>evaluation</th><th>data</th><th>split</th><th>checkpoint</th>"
                      "<th class=\"n\">pictures</th>");
    PM_HTML(html, "<th class=\"n\">{}</th><th class=\"n\">loss</th></tr></thead><tbody>\n",
            metric);
    for (int i = 0; i < r->evaluation_count; i++) {
        const cJSON *e = r->evaluations[i], *m = cJSON_GetObjectItemCaseSensitive(e, "metrics");
        const char *data = pm_json_text_of(e, "data"), *split = pm_json_text_of(e, "split");
        const char *checkpoint = pm_json_text_of(e, "checkpoint");

        pm_html_raw(html, "<tr><td>");
        if (i < SHOWN)
            pm_str_add(html, "<a href=\"#evaluation-%d\">", i);
        add_title(html, e);
        pm_html_raw(html, i < SHOWN ? "</a>" : "");
        PM_HTML(html, "</td><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td>",
                data ? data : "\xe2\x80\x93", split ? split : "\xe2\x80\x93",
                checkpoint ? checkpoint : "\xe2\x80\x93",
                PM_COUNT_TEXT(pm_json_number_of(e, "count")));
        PM_HTML(html, "<td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                pm_report_value(pm_json_number_of(m, metric), !strstr(metric, "loss"), text),
                PM_NUMBER(pm_json_number_of(m, "loss")));
    }
    pm_html_raw(html, "</tbody></table></div></div>\n");
}

void pm_page_evaluation(struct pm_str *html, struct pm_str *json, struct pm_str *cells,
                        const struct pm_report *r)
{
    pm_html_raw(html, "<section id=\"evaluation\"><h2>Evaluation</h2>\n");
    if (r->evaluation_count == 0)
        pm_html_raw(html, "<p class=\"card empty\">No evaluation yet. One is made every "
                          "eval.every_steps while training, and by <code>pumice eval</code>.</p>");
    if (r->evaluation_count > 1)
        write_list(html, r);
    for (int i = 0; i < r->evaluation_count && i < SHOWN; i++)
        write_evaluation(html, json, cells, r->evaluations[i], i);
    if (r->evaluation_count > SHOWN)
        PM_HTML(html, "<p class=\"note\">Pictures and matrices of the newest {} only.</p>",
                PM_COUNT_TEXT(SHOWN));
    pm_html_raw(html, "</section>\n");
}
