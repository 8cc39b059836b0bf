/* page_matrix: the complete confusion matrix for any number of classes. With few classes it is a
 * table. Its cells shrink with the number of classes, so that it fits a window of 1,280 pixels; in
 * a narrower window it scrolls below the row of names. With many classes it is a picture with one
 * pixel per class, which the script magnifies and reads out; its cells are stored as triples. */
#include "report/result.h"

#include <pumice/data.h>

#include <math.h>
#include <string.h>

enum { TOWER_CLASSES = 8, DENSE_CLASSES = 20, TABLE_CLASSES = 40, FINE_CLASSES = 500,
       PICTURE_CLASSES = 2048, CELLS = 60000, COUNTS = 1000 /* larger ones do not fit a cell */ };

/* Intensity of a cell, 0..1: the square root of its share, so that rare mistakes are visible,
 * too. */
static double strength(const struct result *r, const struct cell *c)
{
    const double of_class = pm_result_share(c->count, r->count[c->truth]);

    return of_class > 0 ? sqrt(of_class) : 0;
}

/* ---- a table ----------------------------------------------------------------------------- */

/* Cells show counts if all counts are short, otherwise percentages of their row. */
static bool shows_counts(const struct result *r)
{
    return r->cells_count == 0 || r->cells[0].count < COUNTS;
}

/* "87", "<1"; the whole count is in the title. */
static char *cell_text(const struct result *r, const struct cell *c, char buf[PM_TEXT])
{
    const double percent = 100 * pm_result_share(c->count, r->count[c->truth]);

    if (shows_counts(r))
        return pm_text_count(c->count, buf);
    snprintf(buf, PM_TEXT, percent < 0.5 ? "<1" : "%.0f", percent);
    return buf;
}

static void write_cell(struct pm_str *html, const struct result *r, const struct cell *c)
{
    const bool own = c->truth == c->predicted;
    char text[PM_TEXT];

    pm_str_add(html, "<td class=\"%s\" style=\"--a:%.0f%%\"", own ? "own" : "off",
               100 * strength(r, c));
    PM_HTML(html, " title=\"true: {}, predicted: {}: {} of {} ({})\">{}</td>", r->names[c->truth],
            r->names[c->predicted], PM_COUNT_TEXT(c->count), PM_COUNT_TEXT(r->count[c->truth]),
            PM_PERCENT(pm_result_share(c->count, r->count[c->truth])), cell_text(r, c, text));
}

static void write_row(struct pm_str *html, const struct result *r, int truth,
                      const struct cell *const *row)
{
    PM_HTML(html, "<tr><th scope=\"row\" title=\"{}\">{}</th>", r->names[truth], r->names[truth]);
    for (int p = 0; p < r->classes; p++)
        if (row[p])
            write_cell(html, r, row[p]);
        else
            pm_html_raw(html, truth == p ? "<td class=\"own\">0</td>" : "<td></td>");
    pm_html_raw(html, "</tr>\n");
}

static void write_table(struct pm_str *html, const struct result *r)
{
    const size_t k = (size_t)r->classes;
    const struct cell **at = pm_calloc(k * k, sizeof *at);

    for (int i = 0; i < r->cells_count; i++)
        at[(size_t)r->cells[i].truth * k + (size_t)r->cells[i].predicted] = &r->cells[i];
    PM_HTML(html,
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Confusion matrix\">"
            "<table class=\"matrix{}\"",
            r->classes > DENSE_CLASSES ? " dense" : "");
    pm_str_add(html,
               " style=\"--k:%d\"><thead><tr><th class=\"corner\">true \xe2\x86\x93 predicted "
               "\xe2\x86\x92</th>",
               r->classes);
    for (int p = 0; p < r->classes; p++)
        PM_HTML(html, "<th scope=\"col\"><span title=\"{}\">{}</span></th>", r->names[p],
                r->names[p]);
    pm_html_raw(html, "</tr></thead><tbody>\n");
    for (int t = 0; t < r->classes; t++)
        write_row(html, r, t, at + (size_t)t * k);
    pm_html_raw(html, "</tbody></table></div>\n");
    pm_free(at);
}

/* ---- a picture --------------------------------------------------------------------------- */

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

/* For the script. Where there are too many cells those with the smallest counts are left out:
 * `least` says how large they can be. */
static void write_cells(struct pm_str *cells, const struct result *r)
{
    const int count = r->cells_count < CELLS ? r->cells_count : CELLS;

    pm_str_add(cells, "%s{\"index\":%d,\"classes\":%d,\"least\":%.0f,\"names\":[",
               cells->length ? "," : "", r->index, r->classes,
               r->cells_count > CELLS ? r->cells[CELLS].count : 0);
    for (int i = 0; i < r->classes; i++) {
        pm_html_raw(cells, i ? "," : "");
        pm_html_json_text(cells, r->names[i]);
    }
    pm_html_raw(cells, "],\"of\":[");
    for (int i = 0; i < r->classes; i++)
        pm_str_add(cells, i ? ",%.0f" : "%.0f", r->count[i]);
    pm_html_raw(cells, "],\"cells\":[");
    for (int i = 0; i < count; i++)
        pm_str_add(cells, "%s%d,%d,%.0f", i ? "," : "", r->cells[i].truth, r->cells[i].predicted,
                   r->cells[i].count);
    pm_html_raw(cells, "]}");
}

static void write_picture(struct pm_str *html, struct pm_str *cells, const struct result *r)
{
    struct pm_image8 im;
    uint8_t *png = NULL;
    size_t size;

    paint(r, &im);
    if (pm_image_encode_png(&im, &png, &size) == PM_OK) {
        pm_html_raw(html,
                    "<div class=\"zoom\" hidden><button type=\"button\" data-zoom=\"-1\" "
                    "aria-label=\"smaller\">\xe2\x88\x92</button><button type=\"button\" "
                    "data-zoom=\"1\" aria-label=\"larger\">+</button>"
                    "<output class=\"cell\">Point at a cell, or move with the arrow keys.</output>"
                    "</div>");
        pm_str_add(html,
                   "<div class=\"scroll big\" data-matrix=\"%d\" tabindex=\"0\" role=\"group\" "
                   "aria-label=\"Confusion matrix; arrow keys move from cell to cell\">"
                   "<div class=\"sheet\"><img class=\"%s\"",
                   r->index, r->classes > FINE_CLASSES ? "fine" : "");
        PM_HTML(html, " alt=\"Rows: true classes. Columns: predicted classes.\" "
                      "src=\"data:image/png;base64,");
        pm_str_base64(html, png, size);
        pm_html_raw(html, "\"><i class=\"here\" hidden></i></div></div>\n");
        write_cells(cells, r);
    }
    pm_free(png);
    pm_image_free(&im);
}

void pm_page_matrix(struct pm_str *html, struct pm_str *cells, const struct result *r)
{
    const bool table = r->classes <= TABLE_CLASSES;

    if (r->cells_count == 0)
        return;
    PM_HTML(html,
            "<div class=\"card {}\"><h3>Confusion matrix</h3><p class=\"note\">Rows: true "
            "classes. Columns: predicted classes{}. Correct predictions are "
            "<b class=\"own\">blue</b> on the diagonal; mistakes are <b class=\"off\">orange</b>. "
            "The stronger the colour, the larger the share of the row.</p>",
            r->classes > TOWER_CLASSES && table ? "wide" : "tower",
            table && !shows_counts(r) ? ", in percent of the row" : "");
    if (table)
        write_table(html, r);
    else if (r->classes <= PICTURE_CLASSES)
        write_picture(html, cells, r);
    else
        PM_HTML(html,
                "<p class=\"empty\">{} classes are too many for a picture; see the mistakes and "
                "the classes.</p>",
                PM_COUNT_TEXT(r->classes));
    pm_html_raw(html, "</div>\n");
}
