/* page_curves: the curves of one run: loss, metrics, learning rate, gradient norm, speed, time. */
#include "report/page.h"

#include <math.h>
#include <string.h>

static const struct pm_curve *train_curve(const struct pm_report *r, const char *name)
{
    return pm_curves_find(&r->curves, "train", name);
}

static const struct pm_curve *eval_curve(const struct pm_report *r, const char *name)
{
    return pm_curves_find(&r->curves, "eval", name);
}

/* Losses by the names that their layers have. */
static const char *part_label(const char *name)
{
    static const struct { const char *name, *label; } list[] = {
        { "main_loss", "main head" }, { "aux_loss", "auxiliary head" }, { "edge_loss", "edges" },
        { "loss_center", "centres" }, { "loss_offset", "offsets" },
    };

    for (size_t i = 0; i < PM_COUNT(list); i++)
        if (strcmp(name, list[i].name) == 0)
            return list[i].label;
    return name;
}

static bool is_part(const struct pm_curve *c)
{
    const size_t n = strlen(c->name), word = strlen("_loss");

    if (strcmp(c->kind, "train") != 0 || c->count == 0 || strcmp(c->name, "loss_average") == 0)
        return false;
    return strncmp(c->name, "loss_", word) == 0 ||
           (n > word && strcmp(c->name + n - word, "_loss") == 0);
}

static bool has_decay(const struct pm_report *r)
{
    const struct pm_curve *l2 = train_curve(r, "l2");

    return l2 && l2->last > 0;
}

static void write_loss(struct pm_str *html, struct pm_str *json, const struct pm_report *r)
{
    struct pm_chart c = { .id = "loss",
                          .title = "Loss",
                          .log = PM_CHART_LOG_IF_FAR,
                          .wide = true,
                          .legend = true,
                          .empty =
                              "No values yet: the first is written at step run.log_every_steps." };

    pm_chart_curve(&c, train_curve(r, "loss"),
                   has_decay(r) ? "training, with weight decay" : "training", -1, 0, 0);
    pm_chart_dots(&c, eval_curve(r, "loss"), "evaluation", -1, 1, 1);
    pm_chart_write(&c, html, json);
}

/* The parts of the loss, if there are several losses or a visible weight decay. Includes the loss
 * of evaluations, to be compared with the main head's. */
static void write_parts(struct pm_str *html, struct pm_str *json, const struct pm_report *r)
{
    struct pm_chart c = { .id = "parts", .title = "Parts of the loss", .log = PM_CHART_LOG_IF_FAR,
                          .legend = true };
    const struct pm_curve *loss = train_curve(r, "loss"), *l2 = train_curve(r, "l2");
    const bool decay = has_decay(r) && loss && l2->last > 0.02 * loss->last;
    int parts = 0;

    for (int i = 0; i < r->curves.count; i++)
        parts += is_part(&r->curves.list[i]);
    if (parts == 0 || (parts == 1 && !decay))
        return;
    for (int i = 0; i < r->curves.count; i++)
        if (is_part(&r->curves.list[i]))
            pm_chart_smooth(&c, &r->curves.list[i],
                            parts == 1 ? "pictures" : part_label(r->curves.list[i].name),
                            c.count ? c.count + 1 : 0);
    pm_chart_smooth(&c, l2, "weight decay", c.count + 1);
    pm_chart_dots(&c, eval_curve(r, "loss"), "evaluation", -1, 1, 1);
    pm_chart_write(&c, html, json);
}

/* Shares in one figure, everything else in one each. */
static void write_metrics(struct pm_str *html, struct pm_str *json, const struct pm_report *r)
{
    const char *split = pm_report_split(r);
    char title[256];
    struct pm_chart c = { .id = "metrics", .title = title, .format = PM_CHART_SHARE,
                          .legend = true,
                          .empty = r->evaluation_count > 0 ? "No evaluation while training."
                                                 : "No evaluation yet." };

    snprintf(title, sizeof title, "Metrics%s%s", split ? " on " : "", split ? split : "");
    for (int i = 0; i < r->curves.count; i++) {
        const struct pm_curve *m = &r->curves.list[i];

        if (strcmp(m->kind, "eval") == 0 && m->count > 0 && pm_report_is_share(m) &&
            !pm_report_is_threshold(m->name))
            pm_chart_dots(&c, m, m->name, -1, c.count, pm_chart_dash(c.count));
    }
    pm_chart_write(&c, html, json);
    for (int i = 0; i < r->curves.count; i++) {
        const struct pm_curve *m = &r->curves.list[i];
        char id[32];

        if (strcmp(m->kind, "eval") != 0 || m->count == 0 || strcmp(m->name, "loss") == 0 ||
            pm_report_is_share(m))
            continue;
        snprintf(id, sizeof id, "metric-%d", i);
        c = (struct pm_chart){ .id = id, .title = m->name };
        pm_chart_dots(&c, m, m->name, -1, 0, 0);
        pm_chart_write(&c, html, json);
    }
}

static void write_one(struct pm_str *html, struct pm_str *json, const struct pm_report *r,
                      const char *name, const char *title, enum pm_chart_log log, int color)
{
    struct pm_chart c = { .id = name, .title = title, .log = log };

    pm_chart_curve(&c, train_curve(r, name), title, -1, color, 0);
    pm_chart_write(&c, html, json);
}

static void write_rate(struct pm_str *html, struct pm_str *json, const struct pm_report *r)
{
    struct pm_chart c = { .id = "lr", .title = "Learning rate", .log = PM_CHART_LOG };
    const struct pm_curve *lr = train_curve(r, "lr");

    pm_chart_dots(&c, lr, "learning rate", -1, 2, 0);
    pm_chart_write(&c, html, json);
}

/* Of asynchronous training only. */
static void write_staleness(struct pm_str *html, struct pm_str *json, const struct pm_report *r)
{
    struct pm_chart c = { .id = "staleness", .title = "Staleness", .legend = true };

    if (!train_curve(r, "staleness"))
        return;
    pm_chart_curve(&c, train_curve(r, "staleness"), "mean", -1, 4, 0);
    pm_chart_curve(&c, train_curve(r, "staleness_max"), "largest", -1, 6, 0);
    pm_chart_write(&c, html, json);
}

/* ---- time -------------------------------------------------------------------------------- */

/* The bin of c that begins at this step. Curves of the same lines have the same bins, except where
 * a value was not finite. */
static const struct pm_curve_bin *bin_at(const struct pm_curve *c, uint64_t first)
{
    int low = 0, high = c ? c->count : 0;

    while (low < high) {
        const int mid = (low + high) / 2;
        if (c->bins[mid].first < first)
            low = mid + 1;
        else
            high = mid;
    }
    return c && low < c->count && c->bins[low].first == first ? &c->bins[low] : NULL;
}

struct phase {
    const char *label;
    int color;
    const struct pm_curve *curve;
    double total; /* seconds */
};

/* In the order they are stacked, from below; returns their number. */
static int find_phases(const struct pm_report *r, struct phase list[PM_RUN_PHASES])
{
    static const struct { enum pm_phase_of_run phase; const char *label; } order[] = {
        { PM_RUN_DEVICE, "computing" }, { PM_RUN_AVERAGE, "adding up gradients" },
        { PM_RUN_EXCHANGE, "waiting for other processes" },
        { PM_RUN_UPDATE, "updating on the host" }, { PM_RUN_DATA, "waiting for data" },
        { PM_RUN_EVALUATING, "evaluating" }, { PM_RUN_SAVING, "saving" }, { PM_RUN_OTHER, "other" },
    };
    int n = 0;

    for (size_t i = 0; i < PM_COUNT(order); i++) {
        struct phase p = { .label = order[i].label, .color = (int)i };
        char name[32];

        snprintf(name, sizeof name, "seconds_%s", pm_phase_names[order[i].phase]);
        p.curve = train_curve(r, name);
        for (int k = 0; p.curve && k < p.curve->count; k++)
            p.total += p.curve->bins[k].sum;
        if (p.total > 0)
            list[n++] = p;
    }
    return n;
}

/* Each phase's share of the time between two bins. */
static void write_time(struct pm_str *html, struct pm_str *json, const struct pm_report *r)
{
    struct pm_chart c = { .id = "time", .title = "Where the time goes", .format = PM_CHART_SHARE,
                          .wide = true, .legend = true };
    struct phase list[PM_RUN_PHASES];
    struct pm_curve_point points[PM_CURVE_BINS + 1];
    double sums[PM_CURVE_BINS] = { 0 }, all = 0;
    const int n = find_phases(r, list);
    const struct pm_curve *first = n ? list[0].curve : NULL;

    for (int k = 0; k < n; k++) {
        all += list[k].total;
        for (int i = 0; i < first->count; i++) {
            const struct pm_curve_bin *b = bin_at(list[k].curve, first->bins[i].first);
            sums[i] += b ? fmax(0, b->sum) : 0;
        }
    }
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < first->count; i++) {
            const struct pm_curve_bin *b = bin_at(list[k].curve, first->bins[i].first);
            points[i + 1] = (struct pm_curve_point){
                (double)first->bins[i].last, b && sums[i] > 0 ? fmax(0, b->sum) / sums[i] : 0 };
        }
        points[0] = (struct pm_curve_point){ 0, points[1].value }; /* where the first bin begins */
        pm_chart_area(&c, list[k].label, PM_PERCENT(list[k].total / all), list[k].color,
                      points, first->count + 1);
    }
    pm_chart_write(&c, html, json);
}

/* The speeds of the processes on their parts, if several trained. */
static void write_ranks(struct pm_str *html, struct pm_str *json, const struct pm_report *r)
{
    struct pm_chart c = { .id = "ranks", .title = "Images per second of each process",
                          .legend = true, .log = PM_CHART_NO_LOG };
    char name[40], label[24];

    for (int k = 0; c.count < PM_CHART_SERIES; k++) {
        const struct pm_curve *curve;

        snprintf(name, sizeof name, "rank_%d_images_per_second", k);
        curve = train_curve(r, name);
        if (!curve)
            break;
        snprintf(label, sizeof label, "rank %d", k);
        pm_chart_curve(&c, curve, label, -1, c.count, pm_chart_dash(c.count));
    }
    if (c.count > 0)
        pm_chart_write(&c, html, json);
}

void pm_page_curves(struct pm_str *html, struct pm_str *json, const struct pm_report *r)
{
    pm_html_raw(html, "<section id=\"curves\"><h2>Curves</h2><div class=\"charts\">\n");
    write_loss(html, json, r);
    write_parts(html, json, r);
    write_metrics(html, json, r);
    write_rate(html, json, r);
    write_one(html, json, r, "images_per_second", "Images per second", PM_CHART_NO_LOG, 5);
    write_ranks(html, json, r);
    write_one(html, json, r, "gradient_norm", "Gradient norm", PM_CHART_LOG_IF_FAR, 3);
    write_staleness(html, json, r);
    write_time(html, json, r);
    pm_html_raw(html, "</div></section>\n");
}
