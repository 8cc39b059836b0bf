/* page_evaluation: what the last evaluation got right and wrong: sample pictures, the classes that
 * are taken for each other, the confusion matrix, precision and recall by class. What is counted are
 * pictures, or, where evaluation.json says so ("of"), pixels: a row of `kinds` each.
 *
 * The matrix of few classes is a table of counts. That of many is a picture of a pixel a class, which
 * the script enlarges and reads out; its cells travel as triples. */
#include "report/page.h"

#include <pumice/data.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NARROW_CLASSES = 12, TABLE_CLASSES = 40, FINE_CLASSES = 500, PICTURE_CLASSES = 2048,
       CONFUSIONS = 12, SAMPLES = 24, CELLS = 40000,
       ON_PAPER = 40 /* rows that page.css lets stand */ };

struct cell {
    int truth, predicted;
    double count;
};
struct result;
/* What there is of each class, and the words for it. */
struct kind {
    const char *of;             /* evaluation.json's; NULL: it does not say */
    const char *unit, *are;     /* "pictures", "what pictures are" */
    const char *samples, *list; /* the pictures' note, and the class of their list */
    const char *classes;        /* the classes' note */
    const char *score;          /* by which they are ordered; the bar */
    void (*write_sample)(struct pm_str *html, const struct result *r, const cJSON *sample);
};
struct result {
    const cJSON *evaluation;  /* borrowed */
    const struct kind *kind;
    char **names;             /* [classes], owned */
    double *count, *right;    /* [classes]: pictures of the class; those of them said to be of it */
    double *predicted;        /* [classes]: pictures said to be of it; NAN: not known */
    int classes;
    struct cell *cells;       /* largest count first */
    int cells_count;
};

/* ---- reading ----------------------------------------------------------------------------- */

static int by_count(const void *a, const void *b)
{
    const struct cell *x = a, *y = b;

    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return x->truth != y->truth ? x->truth - y->truth : x->predicted - y->predicted;
}

static void read_cells(struct result *r)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(r->evaluation, "confusion");
    const cJSON *v;
    double part[3];
    int n = 0;

    r->cells = pm_calloc((size_t)cJSON_GetArraySize(list) / 3 + 1, sizeof *r->cells);
    cJSON_ArrayForEach(v, list)
    {
        part[n++] = cJSON_IsNumber(v) ? v->valuedouble : -1;
        if (n < 3)
            continue;
        n = 0;
        if (part[0] >= 0 && part[0] < r->classes && part[1] >= 0 && part[1] < r->classes &&
            part[2] > 0)
            r->cells[r->cells_count++] = (struct cell){ (int)part[0], (int)part[1], part[2] };
    }
    qsort(r->cells, (size_t)r->cells_count, sizeof *r->cells, by_count);
}

static const struct kind *kind_of(const cJSON *evaluation);

static void read_result(struct result *r, const cJSON *evaluation)
{
    const cJSON *per_class = cJSON_GetObjectItemCaseSensitive(evaluation, "per_class");
    const cJSON *counts = cJSON_GetObjectItemCaseSensitive(per_class, "count");
    const cJSON *right = cJSON_GetObjectItemCaseSensitive(per_class, "right");
    const cJSON *predicted = cJSON_GetObjectItemCaseSensitive(per_class, "predicted");
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(evaluation, "labels");
    const double offset = pm_json_number_of(evaluation, "labels_offset");
    const size_t n = (size_t)cJSON_GetArraySize(counts);

    *r = (struct result){ .evaluation = evaluation, .kind = kind_of(evaluation),
                          .classes = (int)n };
    r->names = pm_calloc(n + 1, sizeof *r->names);
    r->count = pm_calloc(n + 1, sizeof *r->count);
    r->right = pm_calloc(n + 1, sizeof *r->right);
    r->predicted = pm_calloc(n + 1, sizeof *r->predicted);
    counts = counts ? counts->child : NULL;
    right = right ? right->child : NULL;
    predicted = predicted ? predicted->child : NULL;
    name = name ? name->child : NULL;
    for (size_t i = 0; i < n; i++) {
        char number[32];

        snprintf(number, sizeof number, "%.0f", (double)i + (isfinite(offset) ? offset : 0));
        r->names[i] = pm_strdup(cJSON_IsString(name) ? name->valuestring : number);
        r->count[i] = cJSON_IsNumber(counts) ? fmax(0, counts->valuedouble) : 0;
        r->right[i] = cJSON_IsNumber(right) ? fmax(0, right->valuedouble) : 0;
        r->predicted[i] = cJSON_IsNumber(predicted) ? fmax(0, predicted->valuedouble) : NAN;
        counts = counts->next;
        right = right ? right->next : NULL;
        predicted = predicted ? predicted->next : NULL;
        name = name ? name->next : NULL;
    }
    read_cells(r);
}

static void free_result(struct result *r)
{
    for (int i = 0; i < r->classes; i++)
        pm_free(r->names[i]);
    pm_free(r->names);
    pm_free(r->count);
    pm_free(r->right);
    pm_free(r->predicted);
    pm_free(r->cells);
}

/* NAN: of none, or of an unknown number. */
static double share(double part, double whole)
{
    return whole > 0 ? fmin(1, part / whole) : NAN;
}

/* ---- sample pictures --------------------------------------------------------------------- */

static const char *class_name(const struct result *r, const cJSON *sample, const char *member,
                              char buf[PM_TEXT])
{
    const double label = pm_json_number_of(sample, member);

    if (label >= 0 && label < r->classes)
        return r->names[(int)label];
    return pm_text_count(label, buf);
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
    PM_HTML(html, "<li class=\"sample {}\"><img src=\"{}\" class=\"{}\" loading=\"lazy\" alt=\"{}\">",
            right ? "right" : "wrong", picture, width < 96 ? "small" : "", truth);
    PM_HTML(html, "<div class=\"verdict\"><b>{}</b></div>",
            right ? "\xe2\x9c\x93 right" : "\xe2\x9c\x95 wrong");
    PM_HTML(html, "<dl><div><dt>is</dt><dd title=\"{}\">{}</dd></div>", truth, truth);
    PM_HTML(html, "<div><dt>said</dt><dd title=\"{}\">{}</dd></div></dl>", answer, answer);
    pm_str_add(html, "<div class=\"sure\"><i style=\"width:%.1f%%\"></i></div>",
               isfinite(probability) ? 100 * fmin(1, fmax(0, probability)) : 0);
    PM_HTML(html, "<p class=\"sureness\">{} sure", PM_PERCENT(probability));
    if (!right && isfinite(pm_json_number_of(sample, "label_probability")))
        PM_HTML(html, ", {} for the truth", PM_PERCENT(pm_json_number_of(sample, "label_probability")));
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

/* The picture, its label and what was said, side by side. */
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
    pm_str_add(html, "</div><div class=\"sure\"><i style=\"width:%.1f%%\"></i></div>",
               isfinite(accuracy) ? 100 * fmin(1, fmax(0, accuracy)) : 0);
    PM_HTML(html, "<p class=\"sureness\">{} of the pixels right</p></li>\n", PM_PERCENT(accuracy));
}

static const struct kind kinds[] = {
    { NULL, "pictures", "what pictures are",
      "Wrong answers first, the most wrong of all evaluated pictures; then right ones, chosen by chance.",
      "samples", "Precision: of the pictures said to be of the class, those that are; recall: of its "
      "pictures, those that were recognised; F1, the bar, is between the two.", "F1", write_labelled },
    { "pixels", "pixels", "what pixels are",
      "Those with the most wrong pixels first, of all evaluated pictures; then some chosen by chance. "
      "Pixels that do not count are in their label's colour.",
      "samples wide", "Precision: of the pixels said to be of the class, those that are; recall: of its "
      "pixels, those that were recognised; IoU, the bar, those that are both of all that are either.",
      "IoU", write_painted },
};

static const struct kind *kind_of(const cJSON *evaluation)
{
    const char *of = pm_json_text_of(evaluation, "of");

    for (size_t i = 1; of && i < PM_COUNT(kinds); i++)
        if (strcmp(of, kinds[i].of) == 0)
            return &kinds[i];
    return &kinds[0];
}

static void write_samples(struct pm_str *html, const struct result *r)
{
    const cJSON *samples = cJSON_GetObjectItemCaseSensitive(r->evaluation, "samples"), *sample;
    int n = 0;

    if (cJSON_GetArraySize(samples) == 0)
        return;
    PM_HTML(html, "<h3>Pictures</h3><p class=\"note\">{}</p><ul class=\"{}\">\n", r->kind->samples,
            r->kind->list);
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
                    "<div class=\"scroll\"><table class=\"rows\"><thead><tr><th>is</th>"
                    "<th>said</th><th class=\"n\">times</th><th class=\"n\">of its {}"
                    "</th></tr></thead><tbody>\n", r->kind->unit);
        PM_HTML(html, "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                r->names[c->truth], r->names[c->predicted], PM_COUNT_TEXT(c->count),
                PM_PERCENT(share(c->count, r->count[c->truth])));
    }
    if (shown)
        pm_html_raw(html, "</tbody></table></div></div>\n");
}

/* ---- the matrix -------------------------------------------------------------------------- */

/* How strongly a cell is shown, 0..1: by the root, so that rare mistakes are seen too. */
static double strength(const struct result *r, const struct cell *c)
{
    const double of_class = share(c->count, r->count[c->truth]);

    return of_class > 0 ? sqrt(of_class) : 0;
}

static void write_matrix_table(struct pm_str *html, const struct result *r)
{
    const size_t k = (size_t)r->classes;
    const struct cell **at = pm_calloc(k * k, sizeof *at);

    for (int i = 0; i < r->cells_count; i++)
        at[(size_t)r->cells[i].truth * k + (size_t)r->cells[i].predicted] = &r->cells[i];
    PM_HTML(html, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Confusion matrix\">"
            "<table class=\"matrix\"><thead><tr><th class=\"corner\">is \xe2\x86\x93 said \xe2\x86\x92"
            "</th>{}", "");
    for (int p = 0; p < r->classes; p++)
        PM_HTML(html, "<th scope=\"col\"><span title=\"{}\">{}</span></th>", r->names[p], r->names[p]);
    pm_html_raw(html, "</tr></thead><tbody>\n");
    for (int t = 0; t < r->classes; t++) {
        PM_HTML(html, "<tr><th scope=\"row\" title=\"{}\">{}</th>", r->names[t], r->names[t]);
        for (int p = 0; p < r->classes; p++) {
            const struct cell *c = at[(size_t)t * k + (size_t)p];

            if (!c) {
                pm_html_raw(html, t == p ? "<td class=\"own\">0</td>" : "<td></td>");
                continue;
            }
            pm_str_add(html, "<td class=\"%s\" style=\"--a:%.0f%%\"", t == p ? "own" : "off",
                       100 * strength(r, c));
            PM_HTML(html, " title=\"is {}, said {}: {}\">{}</td>", r->names[t], r->names[p],
                    PM_COUNT_TEXT(c->count), PM_COUNT_TEXT(c->count));
        }
        pm_html_raw(html, "</tr>\n");
    }
    pm_html_raw(html, "</tbody></table></div>\n");
    pm_free(at);
}

static void paint_cell(const struct result *r, const struct cell *c, struct pm_image8 *im)
{
    const int reach = r->classes > FINE_CLASSES, k = r->classes;
    const uint8_t alpha = (uint8_t)(80 + 175 * strength(r, c));

    for (int y = c->truth - reach; y <= c->truth + reach; y++)
        for (int x = c->predicted - reach; x <= c->predicted + reach; x++) {
            static const uint8_t own[3] = { 0, 114, 178 }, off[3] = { 213, 94, 0 };

            if (y < 0 || y >= k || x < 0 || x >= k)
                continue;
            uint8_t *p = im->pixels + 4 * ((size_t)y * (size_t)k + (size_t)x);
            memcpy(p, c->truth == c->predicted ? own : off, 3);
            p[3] = alpha;
        }
}

/* A pixel a class, three where there are very many, lest single ones vanish: blue on the diagonal,
 * orange elsewhere, see-through where nothing is. */
static void paint(const struct result *r, struct pm_image8 *im)
{
    *im = (struct pm_image8){ r->classes, r->classes, 4,
                              pm_calloc((size_t)r->classes * (size_t)r->classes, 4) };
    for (int i = r->cells_count; i-- > 0;) /* the most frequent ones last */
        paint_cell(r, &r->cells[i], im);
}

static void write_cells(struct pm_str *cells, const struct result *r)
{
    pm_str_add(cells, "{\"classes\":%d,\"names\":[", r->classes);
    for (int i = 0; i < r->classes; i++) {
        pm_html_raw(cells, i ? "," : "");
        pm_html_json_text(cells, r->names[i]);
    }
    pm_html_raw(cells, "],\"of\":[");
    for (int i = 0; i < r->classes; i++)
        pm_str_add(cells, i ? ",%.0f" : "%.0f", r->count[i]);
    pm_html_raw(cells, "],\"cells\":[");
    for (int i = 0; i < r->cells_count && i < CELLS; i++)
        pm_str_add(cells, "%s%d,%d,%.0f", i ? "," : "", r->cells[i].truth, r->cells[i].predicted,
                   r->cells[i].count);
    pm_html_raw(cells, "]}");
}

static void write_matrix_picture(struct pm_str *html, struct pm_str *cells, const struct result *r)
{
    struct pm_image8 im;
    uint8_t *png = NULL;
    size_t size;

    paint(r, &im);
    if (pm_image_encode_png(&im, &png, &size) == PM_OK) {
        pm_html_raw(html, "<div class=\"zoom\" hidden><button type=\"button\" data-zoom=\"-1\" "
                          "aria-label=\"smaller\">\xe2\x88\x92</button><button type=\"button\" "
                          "data-zoom=\"1\" aria-label=\"larger\">+</button>"
                          "<output id=\"cell\">Point at a cell, or move with the arrow keys.</output>"
                          "</div>"
                          "<div class=\"scroll big\" id=\"matrix\" tabindex=\"0\" role=\"group\" "
                          "aria-label=\"Confusion matrix; arrow keys move from cell to cell\">"
                          "<div class=\"sheet\"><img class=\"");
        pm_html_raw(html, r->classes > FINE_CLASSES ? "fine" : "");
        PM_HTML(html, "\" alt=\"Rows: {}. Columns: what was said.\" src=\"data:image/png;base64,",
                r->kind->are);
        pm_str_base64(html, png, size);
        pm_html_raw(html, "\"><i id=\"here\" hidden></i></div></div>\n");
        write_cells(cells, r);
    }
    pm_free(png);
    pm_image_free(&im);
}

static void write_matrix(struct pm_str *html, struct pm_str *cells, const struct result *r)
{
    if (r->cells_count == 0)
        return;
    PM_HTML(html, "<div class=\"card {}\"><h3>Confusion matrix</h3><p class=\"note\">A row is "
                      "{}, a column what was said. Right answers are <b class=\"own\">"
                      "blue</b> and lie on the diagonal; mistakes are <b class=\"off\">orange</b>, "
            "stronger the larger their share of the row.</p>",
            r->classes > NARROW_CLASSES && r->classes <= TABLE_CLASSES ? "wide" : "tower",
            r->kind->are);
    if (r->classes <= TABLE_CLASSES)
        write_matrix_table(html, r);
    else if (r->classes <= PICTURE_CLASSES)
        write_matrix_picture(html, cells, r);
    else
        PM_HTML(html, "<p class=\"empty\">{} classes are too many for a picture; see the mistakes and "
                "the classes.</p>", PM_COUNT_TEXT(r->classes));
    pm_html_raw(html, "</div>\n");
}

/* ---- classes ----------------------------------------------------------------------------- */

struct standing {
    double precision, recall, score; /* NAN: not known */
    double bar;                   /* the kind's score, recall where it is not known; orders them */
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
            const double recall = share(r->right[i], r->count[i]);
            const double said = r->count[i] + r->predicted[i];
            const double score = r->kind->of ? share(r->right[i], said - r->right[i])
                                             : share(2 * r->right[i], said);

            list[n++] = (struct standing){ .index = i, .recall = recall, .score = score,
                                           .precision = share(r->right[i], r->predicted[i]),
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

static void write_classes(struct pm_str *html, const struct result *r)
{
    struct standing *list = pm_calloc((size_t)r->classes + 1, sizeof *list);
    const int n = read_standings(r, list);

    PM_HTML(html, "<div class=\"card\"><h3>Classes</h3><p class=\"note\">The worst first. {}</p>",
            r->kind->classes);
    if (n > 20)
        pm_html_raw(html, "<input type=\"search\" class=\"filter\" data-filter=\"classes\" hidden "
                          "placeholder=\"Find a class\" aria-label=\"Find a class\">");
    PM_HTML(html, "<div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"Precision "
            "and recall by class\"><table class=\"rows\" id=\"classes\"><thead><tr><th>class"
            "</th><th class=\"n\">{}</th><th class=\"n\">precision</th><th class=\"n\">"
            "recall</th><th class=\"n\">{}</th><th class=\"bars\"></th></tr></thead><tbody>\n",
            r->kind->unit, r->kind->score);
    for (int i = 0; i < n; i++)
        write_class(html, r, &list[i]);
    pm_html_raw(html, "</tbody></table></div>");
    if (n > ON_PAPER)
        PM_HTML(html, "<p class=\"note on-paper\">On paper the {} worst only.</p>",
                PM_COUNT_TEXT(ON_PAPER));
    if (n < r->classes)
        PM_HTML(html, "<p class=\"note\">{} classes are on no picture of this evaluation.</p>",
                PM_COUNT_TEXT(r->classes - n));
    pm_html_raw(html, "</div>\n");
    pm_free(list);
}

/* Pictures whose logits were not finite. */
static void write_unanswered(struct pm_str *html, const struct pm_report *r)
{
    const double n = pm_json_number_of(r->evaluation, "unanswered");

    if (n > 0)
        PM_HTML(html, "<p class=\"note\">{} of them got no answer: the net's values were not finite. "
                "They count as wrong, and are in no column of the matrix.</p>", PM_COUNT_TEXT(n));
}

/* ---- the section ------------------------------------------------------------------------- */

void pm_page_evaluation(struct pm_str *html, struct pm_str *cells, const struct pm_report *r)
{
    struct result result;

    pm_html_raw(html, "<section id=\"evaluation\"><h2>Evaluation</h2>\n");
    if (!r->evaluation) {
        pm_html_raw(html, "<p class=\"card empty\">No evaluation yet. One is made every "
                          "eval.every_steps while training, and by <code>pumice eval</code>.</p>"
                          "</section>\n");
        return;
    }
    read_result(&result, r->evaluation);
    PM_HTML(html, "<p class=\"note\">At step {}, over {} pictures.</p>",
            PM_COUNT_TEXT(pm_json_number_of(r->evaluation, "step")),
            PM_COUNT_TEXT(pm_json_number_of(r->evaluation, "count")));
    write_unanswered(html, r);
    write_samples(html, &result);
    if (result.classes > 0) {
        pm_html_raw(html, "<div class=\"charts\">\n");
        write_matrix(html, cells, &result);
        write_confusions(html, &result);
        write_classes(html, &result);
        pm_html_raw(html, "</div>\n");
    }
    pm_html_raw(html, "</section>\n");
    free_result(&result);
}
