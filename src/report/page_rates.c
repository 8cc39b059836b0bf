/* page_rates: the loss over the rate of a learning rate range test. Losses far above the first one
 * are left out, because the part that falls would be a flat line beside them. */
#include "report/page.h"

#include <math.h>
#include <stdlib.h>

void pm_page_rates(struct pm_str *html, struct pm_str *json, const struct pm_rate_report *r)
{
    struct pm_chart c = { .id = "loss", .title = "Loss by learning rate", .note = r->text,
                          .axis = "rate", .log_axis = true, .wide = true, .legend = true };
    struct pm_curve_point *loss = pm_malloc(((size_t)r->count + 1) * sizeof *loss);
    struct pm_curve_point *smooth = pm_malloc(((size_t)r->count + 1) * sizeof *smooth), mark[2];
    double low = INFINITY, top;
    char label[PM_TEXT + 32];

    for (int i = 0; i < r->count; i++)
        low = fmin(low, r->points[i].smooth);
    top = r->count ? r->points[0].smooth + fmax(0.5 * (r->points[0].smooth - low), 1e-3) : 0;
    for (int i = 0; i < r->count; i++) {
        const struct pm_rate_point *p = &r->points[i];

        loss[i] = (struct pm_curve_point){ p->rate, p->loss <= top ? p->loss : NAN };
        smooth[i] = (struct pm_curve_point){ p->rate, p->smooth <= top ? p->smooth : NAN };
    }
    pm_chart_line(&c, "loss of a batch", 2, 1, loss, r->count);
    pm_chart_line(&c, "mean of the steps around", 0, 0, smooth, r->count);
    if (isfinite(r->proposal) && r->count) {
        mark[0] = (struct pm_curve_point){ r->proposal, low };
        mark[1] = (struct pm_curve_point){ r->proposal, top };
        snprintf(label, sizeof label, "proposal: %g", r->proposal);
        pm_chart_line(&c, label, 1, 0, mark, 2);
    }
    pm_html_raw(html, "<section id=\"rates\"><h2>Rates</h2><div class=\"charts\">\n");
    pm_chart_write(&c, html, json);
    pm_html_raw(html, "</div></section>\n");
    pm_free(loss);
    pm_free(smooth);
}
