/* study_show: the table of a study on the terminal, and its log lines. */
#include "study/study_show.h"

#include "study/study_run.h"

#include <pumice/progress.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 16 }; /* of runs */

struct pm_study_show {
    const struct pm_study *s;
    const struct pm_study_results *r;
    const struct pm_study_process *processes;
    int count;
    int runs, done, failed;  /* of the rung */
    int64_t step;
    double began, drawn_at;  /* pm_seconds */
    int fresh;               /* results since then */
    bool terminal;
    int lines;               /* on the terminal now */
    int best;                /* point; -1: none */
    double best_mean;
};

static struct pm_study_show *current; /* for the log's hooks */

/* ---- text -------------------------------------------------------------------------------- */

static void add_value(struct pm_str *t, double v)
{
    pm_str_add(t, isfinite(v) ? "%.4f" : "-", v);
}

static void add_best(const struct pm_study_show *w, struct pm_str *t)
{
    if (w->best < 0)
        return;
    pm_str_add(t, "; best %s ", w->s->metric);
    add_value(t, w->best_mean);
    pm_str_add(t, " of %s", w->s->points[w->best].name);
}

/* Call it when the results have changed. */
static void find_best(struct pm_study_show *w)
{
    int64_t steps[PM_STUDY_RUNGS];
    double spread;
    int rung;

    w->best = pm_study_best(w->s, w->r, &rung);
    if (w->best < 0)
        return;
    pm_study_rungs(w->s, steps);
    pm_study_mean(w->s, w->r, w->best, steps[rung], &w->best_mean, &spread);
}

/* Adds how long the rung will take, from the runs that ended since the start. */
static void add_left(const struct pm_study_show *w, struct pm_str *t)
{
    const int left = w->runs - w->done;

    if (w->fresh == 0 || left <= 0)
        return;
    pm_str_add(t, "; about ");
    pm_str_duration(t, (pm_seconds() - w->began) / w->fresh * left);
    pm_str_add(t, " left%s", w->s->halving.factor > 0 ? " to this step" : "");
}

static void add_head(const struct pm_study_show *w, struct pm_str *t)
{
    pm_str_add(t, "%d of %d runs done", w->done, w->runs);
    if (w->step > 0)
        pm_str_add(t, " to step %lld", (long long)w->step);
    if (w->failed)
        pm_str_add(t, ", %d failed", w->failed);
    add_best(w, t);
    add_left(w, t);
}

static void add_run(const struct pm_study_show *w, const struct pm_study_process *p,
                    struct pm_str *t)
{
    const struct pm_curve *loss = pm_curves_find(&p->curves, "train", "loss");
    const struct pm_curve *metric = pm_curves_find(&p->curves, "eval", w->s->metric);

    if (p->waits) {
        pm_str_add(t, "  waits for an earlier process  %s", p->name);
        return;
    }
    pm_str_add(t, "  step %llu", (unsigned long long)p->curves.last_step);
    if (p->step > 0)
        pm_str_add(t, "/%lld", (long long)p->step);
    if (loss)
        pm_str_add(t, "  loss %.4f", loss->last);
    if (metric) {
        pm_str_add(t, "  %s ", w->s->metric);
        add_value(t, metric->last);
    }
    pm_str_add(t, "  %s", p->name);
}

/* ---- the terminal ------------------------------------------------------------------------ */

static void wipe(struct pm_study_show *w)
{
    for (; w->lines > 0; w->lines--)
        fputs("\033[1A\033[2K", stderr);
}

static void put_line(struct pm_study_show *w, struct pm_str *t, int width)
{
    char line[1024];

    snprintf(line, sizeof line, "%s", t->text ? t->text : "");
    if (width < (int)sizeof line)
        line[width] = '\0'; /* names have only ASCII letters */
    fprintf(stderr, "%s\n", line);
    w->lines++;
    pm_str_free(t);
}

static void draw(struct pm_study_show *w)
{
    const int width = pm_terminal_width();
    struct pm_str t = { 0 };
    int shown = 0, more = 0;

    wipe(w);
    add_head(w, &t);
    put_line(w, &t, width);
    for (int i = 0; i < w->count; i++) {
        if (!w->processes[i].name)
            continue;
        if (shown == MOST_LINES) {
            more++;
            continue;
        }
        add_run(w, &w->processes[i], &t);
        put_line(w, &t, width);
        shown++;
    }
    if (more) {
        pm_str_add(&t, "  and %d more", more);
        put_line(w, &t, width);
    }
    fflush(stderr);
}

static void before_log(void)
{
    if (current)
        wipe(current);
}

static void after_log(void)
{
    if (current)
        draw(current);
}

/* ---- the interface ----------------------------------------------------------------------- */

void pm_study_show_start(const struct pm_study *s, const struct pm_study_results *r,
                         const struct pm_study_process *processes, int count,
                         struct pm_study_show **out)
{
    struct pm_study_show *w = pm_calloc(1, sizeof *w);
    const char *no_color = getenv("NO_COLOR");

    *w = (struct pm_study_show){
        .s = s, .r = r, .processes = processes, .count = count, .began = pm_seconds(),
        .best = -1,
        .terminal = pm_is_terminal() && !(no_color && no_color[0]) &&
                    pm_log_enabled(PM_LEVEL_INFO, "sweep"),
    };
    if (w->terminal) {
        current = w;
        pm_log_hooks(before_log, after_log);
    }
    *out = w;
}

void pm_study_show_rung(struct pm_study_show *w, int runs, int64_t step)
{
    w->runs = runs;
    w->step = step;
    w->done = w->failed = w->fresh = 0;
    find_best(w);
    w->began = pm_seconds();
    for (size_t i = 0; i < w->r->count; i++)
        if (w->r->list[i].step == step) {
            w->done++;
            w->failed += w->r->list[i].message != NULL;
        }
    if (w->s->halving.factor > 0)
        PM_INFO("sweep", "%d %s to step %lld", runs, pm_plural(runs, "run trains", "runs train"),
                (long long)step);
}

void pm_study_show_result(struct pm_study_show *w, const struct pm_study_result *one)
{
    struct pm_str t = { 0 };

    w->done++;
    w->fresh++;
    w->failed += one->message != NULL;
    find_best(w);
    pm_str_add(&t, "%d/%d %s: ", w->done, w->runs,
               pm_study_run_name(w->s, one->point, one->repeat));
    if (one->message) {
        PM_WARN("sweep", "%sfailed: %s", t.text, one->message);
    } else {
        pm_str_add(&t, "%s ", w->s->metric);
        add_value(&t, one->value);
        pm_str_add(&t, " after ");
        pm_str_duration(&t, one->seconds);
        if (!w->terminal) { /* there the table has the rest */
            add_best(w, &t);
            add_left(w, &t);
        }
        PM_INFO("sweep", "%s", t.text);
    }
    pm_str_free(&t);
}

void pm_study_show_now(struct pm_study_show *w)
{
    if (!w->terminal || pm_seconds() - w->drawn_at < 0.2)
        return;
    w->drawn_at = pm_seconds();
    draw(w);
}

void pm_study_show_end(struct pm_study_show **w)
{
    if (!*w)
        return;
    if ((*w)->terminal) {
        wipe(*w);
        fflush(stderr);
        pm_log_hooks(NULL, NULL);
        current = NULL;
    }
    pm_free(*w);
    *w = NULL;
}
