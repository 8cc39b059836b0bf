/* page_texts: the sample pictures of an evaluation of texts. With attention, lines lead from the
 * letters that were read to the columns that the net attended to the most; the page draws them. */
#include "report/result.h"

#include <math.h>
#include <string.h>

#include <pumice/draw.h>

enum { LETTERS = 512 /* most with marks */ };
static const double narrowest = 3; /* width over height of the frame of a picture */

/* Reads the marks, 0..1; returns their number. 0: there are none, or not one for each letter. */
static int read_marks(const cJSON *sample, const char *text, double at[LETTERS])
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(sample, "attention"), *v;
    int n = 0, letters = 0;
    uint32_t code;

    for (size_t left = strlen(text), size; left > 0; left -= size, text += size, letters++) {
        size = (size_t)pm_utf8_next(text, left, &code);
        if (size == 0)
            return 0;
    }
    cJSON_ArrayForEach(v, list)
    {
        if (n == LETTERS || !cJSON_IsNumber(v) || !isfinite(v->valuedouble))
            return 0;
        at[n++] = fmin(1, fmax(0, v->valuedouble));
    }
    return n == letters ? n : 0;
}

/* Draws the letters in a strip below the picture, and the lines over its lowest part. frame: width
 * over height of the picture's frame. share: of its width that the picture fills, in its middle. */
static void write_marks(struct pm_str *html, const char *text, double *at, int count, double frame,
                        double share)
{
    double place[LETTERS];

    for (int i = 0; i < count; i++)
        at[i] = 0.5 + (at[i] - 0.5) * share;
    pm_spread_letters(at, count, 0.055, place);
    pm_html_raw(html, "<div class=\"marks\" role=\"img\" aria-label=\"places of the letters\"");
    /* The lines hide at most 15 % of the picture's height. */
    pm_str_add(html, " style=\"margin-top:max(-.7rem,%.2f%%)\"><svg viewBox=\"0 0 100 100\" "
               "preserveAspectRatio=\"none\">", -15 / frame);
    for (int i = 0; i < count; i++)
        pm_str_add(html, "<path class=\"rim\" d=\"M%.2f 0V20\"/><path class=\"k%d\" d=\"M%.2f "
                   "0V20L%.2f 68\"/>", 100 * at[i], i % 2, 100 * at[i], 100 * place[i]);
    pm_html_raw(html, "</svg>");
    for (int i = 0; i < count; i++) {
        uint32_t code;
        const int size = pm_utf8_next(text, strlen(text), &code);
        char letter[8];

        snprintf(letter, sizeof letter, "%.*s", size, text);
        text += size;
        pm_str_add(html, "<b class=\"k%d\" style=\"left:%.2f%%\">", i % 2, 100 * place[i]);
        PM_HTML(html, "{}</b>", letter);
    }
    pm_html_raw(html, "</div>");
}

/* Shows a picture, and the marks if there are any. what: the picture's name; NULL: none. */
static void write_picture(struct pm_str *html, const cJSON *picture, const char *truth,
                          const char *text, double *at, int count, const char *what)
{
    const char *address = pm_json_text_of(picture, "picture");
    const double width = pm_json_number_of(picture, "width");
    const double height = pm_json_number_of(picture, "height");
    const double shape = width > 0 && height > 0 ? width / height : narrowest;
    const double frame = fmax(narrowest, shape);

    if (!address || strncmp(address, "data:image/", 11) != 0)
        return;
    PM_HTML(html, "<img src=\"{}\" class=\"{}\" loading=\"lazy\" alt=\"{}\"", address,
            width < 192 ? "small" : "", truth);
    pm_str_add(html, " style=\"aspect-ratio:%.4g\">", frame);
    if (count > 0)
        write_marks(html, text, at, count, frame, shape / frame);
    if (what)
        PM_HTML(html, "<p class=\"what\">{}</p>", what);
}

void pm_page_texts_sample(struct pm_str *html, const struct result *r, const cJSON *sample)
{
    const char *picture = pm_json_text_of(sample, "picture");
    const char *truth = pm_json_text_of(sample, "truth"), *text = pm_json_text_of(sample, "text");
    const cJSON *beside = cJSON_GetObjectItemCaseSensitive(sample, "beside");
    const bool right = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(sample, "right"));
    const double probability = pm_json_number_of(sample, "probability");
    double at[LETTERS];
    const int count = text ? read_marks(sample, text, at) : 0;

    (void)r;
    truth = truth ? truth : "";
    text = text ? text : "";
    /* With a transformer the marks belong to the straightened picture, the only one beside. */
    beside = beside ? beside->child : NULL;
    if (!picture || strncmp(picture, "data:image/", 11) != 0)
        return;
    PM_HTML(html, "<li class=\"sample text {}\">", right ? "right" : "wrong");
    write_picture(html, sample, truth, text, at, beside ? 0 : count, NULL);
    if (beside)
        write_picture(html, beside, truth, text, at, count, pm_json_text_of(beside, "what"));
    pm_page_sample_file(html, sample);
    PM_HTML(html, "<div class=\"verdict\"><b>{}</b></div>",
            right ? "\xe2\x9c\x93 right" : "\xe2\x9c\x95 wrong");
    PM_HTML(html, "<dl><div><dt>is</dt><dd>{}</dd></div>", truth);
    PM_HTML(html, "<div><dt>read</dt><dd>{}</dd></div></dl>", text);
    pm_str_add(html, "<div class=\"sure\"><i style=\"width:%.1f%%\"></i></div>",
               isfinite(probability) ? 100 * fmin(1, fmax(0, probability)) : 0);
    PM_HTML(html, "<p class=\"sureness\">{} sure</p></li>\n", PM_PERCENT(probability));
}
