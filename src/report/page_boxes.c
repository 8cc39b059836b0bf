/* page_boxes: an evaluation of detected boxes. Boxes are drawn by the page itself over the picture,
 * so they are sharp at any size, and their captions can be read by pointing at them. A rotated box
 * is drawn inside the upright box around it, which has the caption; its front edge is thick. The
 * picture's data is in the page once: both panels have it as background. */
#include "report/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/angles.h"

enum { CAPTIONS = 12 /* with more boxes only pointing at one shows its caption */, BOXES = 100,
       CURVES = 7 /* of classes */, POINTS = 101 };

/* Classes without the background. */
static int labelled(const struct result *r)
{
    return r->classes > 0 ? r->classes - 1 : 0;
}

/* ---- pictures ---------------------------------------------------------------------------- */

/* A kind of a box in evaluation.json, its words, and its class in page.css. */
static const struct box_kind {
    const char *kind, *word, *style, *help;
} kinds[] = {
    { "right", "right", "good", "IoU of at least 0.5 with an object of its class" },
    { "loose", "loose", "bad", "right class, but the IoU is only 0.1 to 0.5" },
    { "wrong_class", "wrong class", "bad", "IoU of at least 0.5 with an object of another class" },
    { "both", "wrong and loose", "bad", "another class, and an IoU of 0.1 to 0.5" },
    { "double", "double", "bad", "the object is already found by a detection with a higher score" },
    { "background", "background", "bad", "no object is near: all IoUs are below 0.1" },
    { "missed", "missed", "bad", "objects without a right, loose or wrong detection" },
    { "ignored", "ignored", "ignored", "on a crowd or a difficult object: not counted" },
};

static const struct box_kind *kind_of(const cJSON *box)
{
    const char *kind = pm_json_text_of(box, "kind");

    for (size_t i = 0; kind && i < PM_COUNT(kinds); i++)
        if (strcmp(kind, kinds[i].kind) == 0)
            return &kinds[i];
    return NULL;
}

/* "dog 87 %, loose"; a true object has no score, and right ones no word. */
static void add_caption(struct pm_str *s, const struct result *r, const cJSON *box,
                        const struct box_kind *kind, bool whole)
{
    const double label = pm_json_number_of(box, "label"), score = pm_json_number_of(box, "score");

    if (label >= 0 && label < labelled(r))
        PM_HTML(s, "{}", r->names[(int)label]);
    else
        pm_html_raw(s, "?");
    if (isfinite(score))
        pm_str_add(s, " %.0f\xc2\xa0%%", 100 * score);
    if (strcmp(kind->kind, "right") != 0 && (whole || isfinite(score)))
        PM_HTML(s, ", {}", kind->word);
}

/* Returns whether the four sides are numbers; they are clipped to the picture. */
static bool read_sides(const cJSON *box, double side[4])
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(box, "box");

    v = v ? v->child : NULL;
    for (int k = 0; k < 4; k++, v = v->next) {
        if (!cJSON_IsNumber(v) || !isfinite(v->valuedouble))
            return false;
        side[k] = 100 * fmin(1, fmax(0, v->valuedouble));
    }
    return true;
}

/* Returns whether the box has five finite numbers. */
static bool read_rotated(const cJSON *box, double numbers[5])
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(box, "rotated");

    v = v ? v->child : NULL;
    for (int k = 0; k < 5; k++, v = v->next) {
        if (!cJSON_IsNumber(v) || !isfinite(v->valuedouble))
            return false;
        numbers[k] = v->valuedouble;
    }
    return true;
}

/* Draws a rotated box inside an upright one with these sides, in percent of the picture. Percents
 * become lengths on the page before it is turned, so its angles stay right. */
static void write_rotated(struct pm_str *html, const double numbers[5], const double side[4])
{
    static const double degrees = 180 / PM_PI;
    const double height = side[2] - side[0], width = side[3] - side[1];
    const double h = fmax(0, numbers[2]), w = fmax(0, numbers[3]);

    if (!(height > 0 && width > 0))
        return;
    pm_str_add(html, "<u style=\"top:%.2f%%;left:%.2f%%;height:%.2f%%;width:%.2f%%;"
               "transform:rotate(%.2fdeg)\"></u>",
               100 * (100 * (numbers[0] - h / 2) - side[0]) / height,
               100 * (100 * (numbers[1] - w / 2) - side[1]) / width, 100 * 100 * h / height,
               100 * 100 * w / width, degrees * numbers[4]);
}

static void write_box(struct pm_str *html, const struct result *r, const cJSON *box, bool caption)
{
    const struct box_kind *kind = kind_of(box);
    double side[4], numbers[5];

    if (!kind || !read_sides(box, side))
        return;
    const bool rotated = read_rotated(box, numbers);

    PM_HTML(html, "<i class=\"{}{}\" tabindex=\"0\" title=\"", kind->style,
            rotated ? " turned" : "");
    add_caption(html, r, box, kind, true);
    pm_str_add(html, "\" style=\"top:%.2f%%;left:%.2f%%;height:%.2f%%;width:%.2f%%\">", side[0],
               side[1], fmax(0, side[2] - side[0]), fmax(0, side[3] - side[1]));
    if (rotated)
        write_rotated(html, numbers, side);
    if (caption) {
        PM_HTML(html, "<b class=\"{}{}\">", side[0] < 8 ? "inside" : "",
                side[1] > 55 ? " leftward" : "");
        add_caption(html, r, box, kind, false);
        pm_html_raw(html, "</b>");
    }
    pm_html_raw(html, "</i>");
}

/* The boxes in the reverse order: the first ones, errors, lie above the others. */
static void write_panel(struct pm_str *html, const struct result *r, const cJSON *sample,
                        const char *member, const char *what)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(sample, member);
    const int all = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    const int count = all < BOXES ? all : BOXES;
    const double width = pm_json_number_of(sample, "width");
    const double height = pm_json_number_of(sample, "height");
    char text[PM_TEXT];

    PM_HTML(html, "<figure><div class=\"boxed\" role=\"img\" aria-label=\"{}: {} {}\"", what,
            pm_text_count(count, text), pm_plural(count, "box", "boxes"));
    if (width > 0 && height > 0)
        pm_str_add(html, " style=\"aspect-ratio:%.0f/%.0f\"", width, height);
    pm_html_raw(html, ">");
    for (int i = count; i-- > 0;)
        write_box(html, r, cJSON_GetArrayItem(list, i), count <= CAPTIONS);
    PM_HTML(html, "</div><figcaption>{}</figcaption></figure>", what);
}

/* Whether it is a picture's data, and of characters that cannot end the style that it becomes part
 * of. */
static bool is_picture(const char *address)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "+/=:;,";

    return address && strncmp(address, "data:image/", 11) == 0 &&
           strspn(address, allowed) == strlen(address);
}

void pm_page_boxes_sample(struct pm_str *html, const struct result *r, const cJSON *sample)
{
    const char *picture = pm_json_text_of(sample, "picture");
    const double errors = pm_json_number_of(sample, "errors");
    const bool right = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(sample, "right"));

    if (!is_picture(picture))
        return;
    PM_HTML(html, "<li class=\"sample {}\" style=\"--p:url({})\"><div class=\"panels two\">",
            right ? "right" : "wrong", picture);
    write_panel(html, r, sample, "truth", "ground truth");
    write_panel(html, r, sample, "found", "detections");
    pm_html_raw(html, "</div>");
    pm_page_sample_file(html, sample);
    pm_html_raw(html, "<div class=\"verdict\"><b>");
    if (right)
        pm_html_raw(html, "\xe2\x9c\x93 no error");
    else
        PM_HTML(html, "\xe2\x9c\x95 {} {}", PM_COUNT_TEXT(errors),
                pm_plural(errors, "error", "errors"));
    pm_html_raw(html, "</b></div></li>\n");
}

/* ---- precision-recall curves ------------------------------------------------------------- */

/* Reads precisions at recalls of 0 to 100 %; returns their number. */
static int read_curve(const cJSON *list, struct pm_curve_point points[POINTS])
{
    const int all = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    const cJSON *v = all ? list->child : NULL;
    int n = 0;

    for (; v && n < POINTS; v = v->next, n++)
        points[n] = (struct pm_curve_point){ n, cJSON_IsNumber(v) ? v->valuedouble : NAN };
    return n;
}

static const cJSON *class_curve(const struct result *r, int label)
{
    const cJSON *curves = cJSON_GetObjectItemCaseSensitive(r->evaluation, "curves");

    return cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(curves, "per_class"), label);
}

/* The classes with the most objects, at most CURVES; returns their number. */
static int choose_classes(const struct result *r, int out[CURVES])
{
    int n = 0;

    for (int c = 0; c < labelled(r); c++) {
        int at = n;

        if (r->count[c] <= 0)
            continue;
        while (at > 0 && r->count[c] > r->count[out[at - 1]])
            at--;
        if (at == CURVES)
            continue;
        n += n < CURVES;
        memmove(out + at + 1, out + at, (size_t)(n - 1 - at) * sizeof *out);
        out[at] = c;
    }
    return n;
}

static void write_curves(struct pm_str *html, struct pm_str *json, const struct result *r)
{
    const cJSON *curves = cJSON_GetObjectItemCaseSensitive(r->evaluation, "curves");
    struct pm_curve_point points[POINTS];
    int chosen[CURVES], n = choose_classes(r, chosen), drawn = 0;
    char id[48];
    struct pm_chart c = { .id = id, .title = "Precision and recall", .format = PM_CHART_SHARE,
                          .axis = "recall", .unit = "\xc2\xa0%", .from_zero = true,
                          .legend = true,
                          .note = "The best precision at this or a larger recall, at an IoU of "
                                  "0.5. At most the seven classes with the most objects." };

    snprintf(id, sizeof id, "precision-recall-%d", r->index);
    if (labelled(r) > 1) {
        const int count = read_curve(cJSON_GetObjectItemCaseSensitive(curves, "all"), points);

        if (count)
            pm_chart_line(&c, "all classes", 0, 0, points, count), drawn++;
    }
    for (int i = 0; i < n; i++) {
        const int count = read_curve(class_curve(r, chosen[i]), points);

        if (count)
            pm_chart_line(&c, r->names[chosen[i]], i + 1, pm_chart_dash(i + 1), points, count),
                drawn++;
    }
    if (drawn)
        pm_chart_write(&c, html, json);
}

/* ---- kinds of errors --------------------------------------------------------------------- */

static void write_errors(struct pm_str *html, const struct result *r)
{
    const cJSON *errors = cJSON_GetObjectItemCaseSensitive(r->evaluation, "errors");
    double most = 1;

    if (!cJSON_IsObject(errors))
        return;
    for (size_t i = 0; i < PM_COUNT(kinds); i++)
        most = fmax(most, pm_json_number_of(errors, kinds[i].kind));
    PM_HTML(html, "<div class=\"card\"><h3>Kinds of errors</h3><p class=\"note\">Detections with a "
            "score above {}, and missed objects.</p><div class=\"scroll\"><table class=\"rows "
            "kinds\"><thead><tr><th>kind</th><th class=\"n\">boxes</th><th class=\"bars\"></th>"
            "<th>that is</th></tr></thead><tbody>\n",
            PM_NUMBER(pm_json_number_of(r->evaluation, "threshold")));
    for (size_t i = 0; i < PM_COUNT(kinds); i++) {
        const double count = pm_json_number_of(errors, kinds[i].kind);

        if (!(count >= 0))
            continue;
        PM_HTML(html, "<tr class=\"{}\"><td>{}</td><td class=\"n\">{}</td>", kinds[i].style,
                kinds[i].word, PM_COUNT_TEXT(count));
        pm_str_add(html, "<td class=\"bars\"><i style=\"width:%.1f%%\"></i></td>",
                   100 * count / most);
        PM_HTML(html, "<td class=\"note\">{}</td></tr>\n", kinds[i].help);
    }
    pm_html_raw(html, "</tbody></table></div></div>\n");
}

/* ---- classes ----------------------------------------------------------------------------- */

struct standing { double ap; int index; };

/* The worst first; classes without objects are not listed. */
static int by_precision(const void *a, const void *b)
{
    const struct standing *x = a, *y = b;

    if (x->ap != y->ap)
        return x->ap < y->ap ? -1 : 1;
    return x->index - y->index;
}

static void write_spark(struct pm_str *html, const cJSON *curve)
{
    struct pm_curve_point points[POINTS];
    const int n = read_curve(curve, points);

    pm_html_raw(html, "<td><svg class=\"spark\" viewBox=\"0 0 100 100\" "
                      "preserveAspectRatio=\"none\" aria-hidden=\"true\"><path d=\"");
    for (int i = 0; i < n; i += 4)
        if (isfinite(points[i].value))
            pm_str_add(html, "%c%d %.0f", i ? 'L' : 'M', i,
                       100 - 100 * fmin(1, fmax(0, points[i].value)));
    pm_html_raw(html, "\"/></svg></td>");
}

struct lists { double *ap, *ap_50, *best_f1, *best_score; };

static void write_class(struct pm_str *html, const struct result *r, const struct lists *l, int c)
{
    PM_HTML(html, "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>", r->names[c],
            PM_COUNT_TEXT(r->count[c]), PM_PERCENT(l->ap[c]));
    pm_str_add(html, "<td class=\"bars\"><i style=\"width:%.1f%%\"></i></td>",
               isfinite(l->ap[c]) ? 100 * fmin(1, fmax(0, l->ap[c])) : 0);
    PM_HTML(html, "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
            "<td class=\"n\">{}</td><td class=\"n\">{}</td>", PM_PERCENT(l->ap_50[c]),
            PM_PERCENT(pm_result_share(r->right[c], r->predicted[c])),
            PM_PERCENT(pm_result_share(r->right[c], r->count[c])), PM_PERCENT(l->best_f1[c]),
            PM_NUMBER(l->best_score[c]));
    write_spark(html, class_curve(r, c));
    pm_html_raw(html, "</tr>\n");
}

static void write_head(struct pm_str *html, const struct result *r, int n)
{
    PM_HTML(html, "<div class=\"card wide\"><h3>Classes</h3><p class=\"note\">The worst first. AP "
            "(the bar): average precision, mean over IoUs of 0.5 to 0.95; AP50: at 0.5. Precision "
            "and recall: of detections with a score above {}. Best F1: with detections above the "
            "score beside it. Last: precision by recall.</p>",
            PM_NUMBER(pm_json_number_of(r->evaluation, "threshold")));
    pm_page_classes_open(html, r, "classes", "Average precision by class", n);
    pm_html_raw(html, "<th class=\"n\">objects</th><th class=\"n\">AP</th><th class=\"bars\">"
                      "</th><th class=\"n\">AP50</th><th class=\"n\">precision</th><th class=\"n\">"
                      "recall</th><th class=\"n\">best F1</th><th class=\"n\">at score</th><th>"
                      "</th></tr></thead><tbody>\n");
}

void pm_page_boxes_classes(struct pm_str *html, const struct result *r)
{
    const cJSON *per_class = cJSON_GetObjectItemCaseSensitive(r->evaluation, "per_class");
    struct lists l = { pm_result_list(r, per_class, "ap"), pm_result_list(r, per_class, "ap_50"),
                       pm_result_list(r, per_class, "best_f1"),
                       pm_result_list(r, per_class, "best_score") };
    struct standing *list = pm_malloc(((size_t)r->classes + 1) * sizeof *list);
    int n = 0;

    for (int c = 0; c < labelled(r); c++)
        if (r->count[c] > 0)
            list[n++] = (struct standing){ isfinite(l.ap[c]) ? l.ap[c] : -1, c };
    qsort(list, (size_t)n, sizeof *list, by_precision);
    write_head(html, r, n);
    for (int i = 0; i < n; i++)
        write_class(html, r, &l, list[i].index);
    pm_page_classes_close(html, n, 0);
    if (n < labelled(r))
        PM_HTML(html, "<p class=\"note\">{} {} no object in this evaluation.</p>",
                PM_COUNT_TEXT(labelled(r) - n),
                pm_plural(labelled(r) - n, "class has", "classes have"));
    pm_html_raw(html, "</div>\n");
    pm_free(list);
    pm_free(l.ap);
    pm_free(l.ap_50);
    pm_free(l.best_f1);
    pm_free(l.best_score);
}

void pm_page_boxes_cards(struct pm_str *html, struct pm_str *json, const struct result *r)
{
    write_curves(html, json, r);
    write_errors(html, r);
    pm_page_stages(html, r);
}
