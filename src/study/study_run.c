/* study_run: rungs, survivors, and the loop that keeps all workers busy. */
#include "study/study_run.h"

#include "study/study_board.h"
#include "study/study_parts.h"
#include "study/study_show.h"

#include <pumice/checkpoint.h>
#include <pumice/report.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- rungs ------------------------------------------------------------------------------- */

int pm_study_rungs(const struct pm_study *s, int64_t steps[PM_STUDY_RUNGS])
{
    int count = 0;

    if (s->halving.factor > 0)
        for (double at = (double)s->halving.first_steps;
             at < (double)s->steps && count < PM_STUDY_RUNGS - 1; at *= s->halving.factor) {
            const int64_t step = (int64_t)llround(at);
            if (step < s->steps && (count == 0 || step > steps[count - 1]))
                steps[count++] = step;
        }
    steps[count++] =
        pm_study_varies(s, "run.steps") || pm_study_varies(s, "run.epochs") ? 0 : s->steps;
    return count;
}

static bool is_better(const struct pm_study *s, double a, double b)
{
    return s->higher_is_better ? a > b : a < b;
}

/* Keeps the best of the points that are alive, at this step. */
static int keep_best(const struct pm_study *s, const struct pm_study_results *r, int64_t step,
                     int keep, bool *alive)
{
    double *value = pm_calloc((size_t)s->points_count, sizeof *value), spread;
    int kept = 0;

    for (int i = 0; i < s->points_count; i++) {
        value[i] = NAN;
        if (alive[i])
            pm_study_mean(s, r, i, step, &value[i], &spread);
        alive[i] = false;
    }
    for (; kept < keep; kept++) {
        int best = -1;
        for (int i = 0; i < s->points_count; i++)
            if (!alive[i] && isfinite(value[i]) &&
                (best < 0 || is_better(s, value[i], value[best])))
                best = i;
        if (best < 0)
            break;
        alive[best] = true;
    }
    pm_free(value);
    return kept;
}

int pm_study_survivors(const struct pm_study *s, const struct pm_study_results *r, int rung,
                       bool *alive)
{
    int64_t steps[PM_STUDY_RUNGS];
    int count = s->points_count;

    pm_study_rungs(s, steps);
    for (int i = 0; i < s->points_count; i++)
        alive[i] = true;
    for (int k = 0; k < rung; k++)
        count = keep_best(s, r, steps[k], (int)fmax(1, ceil(count / s->halving.factor)), alive);
    return count;
}

int pm_study_best(const struct pm_study *s, const struct pm_study_results *r, int *rung)
{
    bool *alive = pm_calloc((size_t)s->points_count, sizeof *alive);
    int64_t steps[PM_STUDY_RUNGS];
    int best = -1;

    for (*rung = pm_study_rungs(s, steps) - 1; *rung >= 0 && best < 0; (*rung)--) {
        for (int i = 0; i < s->points_count; i++)
            alive[i] = true;
        keep_best(s, r, steps[*rung], 1, alive);
        for (int i = 0; i < s->points_count && best < 0; i++)
            best = alive[i] ? i : -1;
    }
    (*rung)++;
    pm_free(alive);
    return best;
}

/* ---- the page ---------------------------------------------------------------------------- */

enum { PAGE_SECONDS = 60 }; /* between two pages while the study runs */

static int make_page(const struct pm_study *s, bool live)
{
    struct pm_study_report *report = NULL;
    struct pm_str html = { 0 }, path = { 0 };
    int err = PM_OK;

    PM_TRY(pm_study_report_open(s->folder, &report));
    pm_study_page(report, live, pm_run_is_locked, &html);
    pm_str_add(&path, "%s/report.html", s->folder);
    PM_TRY(pm_file_write(path.text, html.text, html.length));
out:
    pm_str_free(&html);
    pm_str_free(&path);
    pm_study_report_close(&report);
    return err;
}

/* Writes the page of the study. A study does not end because its page cannot be written. */
static void write_page(const struct pm_study *s, bool live)
{
    if (make_page(s, live) < 0)
        PM_WARN("sweep", "%s", pm_error_text());
}

/* ---- the loop ---------------------------------------------------------------------------- */

struct loop {
    const struct pm_study *s;
    struct pm_study_results *r;
    const struct pm_study_run_options *o;
    struct pm_study_process *processes; /* [workers] */
    struct pm_study_show *show;
    bool *alive;                        /* [points] */
    int64_t step, before;               /* of the rung, and of the one below; -1: none */
    int point, repeat;                  /* where the search for the next run goes on */
    int failures;
    bool stopping;
    int signal;                         /* that stops it; 0: none */
    char why[1024];                     /* of the failure that ends the study */
    double page_at;                     /* pm_seconds of the last page */
};

/* Whether a run of the rung is to be trained. */
static bool is_open(const struct loop *l, int point, int repeat)
{
    const struct pm_study_result *was =
        l->before < 0 ? NULL : pm_study_results_find(l->r, point, repeat, l->before);

    return l->alive[point] && !pm_study_results_find(l->r, point, repeat, l->step) &&
           (l->before < 0 || (was && !was->message));
}

/* Moves to the next open run. False: there is none. */
static bool next_run(struct loop *l, int *point, int *repeat)
{
    while (l->point < l->s->points_count) {
        *point = l->point;
        *repeat = l->repeat;
        if (++l->repeat == l->s->repeats) {
            l->repeat = 0;
            l->point++;
        }
        if (is_open(l, *point, *repeat))
            return true;
    }
    return false;
}

static int keep_result(struct loop *l, const struct pm_study_process *p,
                       const struct pm_study_result *one)
{
    int err = PM_OK;

    pm_study_board_result(l->s, one, p->run, p->curves.last_step);
    PM_TRY(pm_study_results_add(l->r, l->s, one));
    pm_study_show_result(l->show, one);
    if (one->message) {
        l->failures++;
        if (l->o->stop_on_error && !l->stopping) {
            snprintf(l->why, sizeof l->why, "%s: %s", p->name, one->message);
            l->stopping = true;
        }
    }
out:
    return err;
}

/* Starts, polls and stops the processes. *busy: how many train. */
static int turn(struct loop *l, int *busy)
{
    int point, repeat, err = PM_OK;

    *busy = 0;
    for (int w = 0; w < l->s->workers_count; w++) {
        struct pm_study_process *p = &l->processes[w];
        struct pm_study_result one;

        if (!p->name && !l->stopping && next_run(l, &point, &repeat))
            PM_TRY(pm_study_start(l->s, &l->s->workers[w], point, repeat, l->step, l->o->overrides,
                                  l->o->overrides_count, l->o->open, p));
        if (!p->name)
            continue;
        switch (pm_study_poll(l->s, p, &one)) {
        case PM_STUDY_RUNS:
            (*busy)++;
            break;
        case PM_STUDY_STOPPED:
            pm_study_forget(p);
            break;
        case PM_STUDY_DONE:
        case PM_STUDY_FAILED:
            (*busy)++; /* the worker takes the next run in the next turn */
            PM_TRY(keep_result(l, p, &one));
            pm_study_forget(p);
            break;
        }
    }
out:
    return err;
}

static void stop_all(struct loop *l)
{
    for (int w = 0; w < l->s->workers_count; w++)
        if (l->processes[w].name)
            pm_study_stop(&l->processes[w]);
}

/* Reads the signal that came since the last call. A second SIGINT or SIGTERM asks the processes
 * once more, which ends them at once. A terminal that closes, or a pipe, sends its signal several
 * times. */
static bool take_signal(struct loop *l)
{
    const int number = *l->o->signal;
    const bool again = number == SIGINT || number == SIGTERM || l->signal == 0;

    if (number == 0)
        return false;
    *l->o->signal = 0;
    l->signal = l->signal ? l->signal : number;
    l->stopping = true;
    return again;
}

static int train_rung(struct loop *l)
{
    const struct timespec pause = { 0, 50 * 1000 * 1000 };
    bool asked = false;
    int busy = 1, err = PM_OK;

    l->point = l->repeat = 0;
    while (busy > 0) {
        if (take_signal(l) || (l->stopping && !asked)) {
            stop_all(l);
            asked = true;
        }
        PM_TRY(turn(l, &busy));
        pm_study_show_now(l->show);
        if (pm_seconds() - l->page_at >= PAGE_SECONDS) {
            write_page(l->s, true);
            l->page_at = pm_seconds();
        }
        if (busy > 0)
            nanosleep(&pause, NULL);
    }
out:
    return err;
}

/* Ends the processes after an error of the study itself. */
static void end_all(struct loop *l)
{
    char why[1024];
    int busy = 1;

    snprintf(why, sizeof why, "%s", pm_error_text());
    l->stopping = true;
    stop_all(l);
    for (const struct timespec pause = { 0, 50 * 1000 * 1000 }; busy > 0; nanosleep(&pause, NULL)) {
        busy = 0;
        if (take_signal(l))
            stop_all(l);
        for (int w = 0; w < l->s->workers_count; w++) {
            struct pm_study_process *p = &l->processes[w];
            struct pm_study_result one;

            if (p->name && pm_study_poll(l->s, p, &one) == PM_STUDY_RUNS)
                busy++;
            else
                pm_study_forget(p);
        }
    }
    pm_fail(PM_EFAIL, "%s", why);
}

/* ---- the end ----------------------------------------------------------------------------- */

static int write_best(const struct loop *l)
{
    struct pm_config *c = NULL;
    cJSON *dump = NULL;
    char *text = NULL;
    struct pm_str path = { 0 };
    int rung, err = PM_OK;
    const int best = pm_study_best(l->s, l->r, &rung);

    if (best < 0)
        return pm_fail(PM_EFAIL, "sweep: all runs have failed; the messages are in %s", l->r->path);
    PM_TRY(pm_study_config(l->s, best, 0, l->o->overrides, l->o->overrides_count, l->o->open, &c));
    dump = pm_config_dump(c);
    pm_str_add(&path, "%s/best", l->s->folder); /* not the folder of the study's own run */
    cJSON_ReplaceItemInObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(dump, "run"), "folder",
                                           cJSON_CreateString(path.text));
    text = pm_json_print(dump);
    path.length = 0;
    pm_str_add(&path, "%s/best.json", l->s->folder);
    PM_TRY(pm_file_write(path.text, text, strlen(text)));
out:
    pm_str_free(&path);
    pm_free(text);
    cJSON_Delete(dump);
    pm_config_destroy(&c);
    return err;
}

/* Writes the last page. Keeps the text of an earlier error. */
static void write_end(const struct pm_study *s)
{
    char why[1024];

    snprintf(why, sizeof why, "%s", pm_error_text());
    write_page(s, false);
    pm_fail(PM_EFAIL, "%s", why);
}

/* Counts the runs of the rung, and those without a result. */
static int count_runs(const struct loop *l, int *open)
{
    int count = 0;

    *open = 0;
    for (int i = 0; i < l->s->points_count; i++)
        for (int k = 0; k < l->s->repeats; k++) {
            const bool wanted = is_open(l, i, k);
            count += wanted || (l->alive[i] && pm_study_results_find(l->r, i, k, l->step));
            *open += wanted;
        }
    return count;
}

static int train_all(struct loop *l)
{
    int64_t steps[PM_STUDY_RUNGS];
    const int rungs = pm_study_rungs(l->s, steps);
    int open, all = 0, err = PM_OK;

    for (int k = 0; k < rungs && !l->stopping; k++) {
        l->step = steps[k];
        l->before = k > 0 ? steps[k - 1] : -1;
        pm_study_survivors(l->s, l->r, k, l->alive);
        pm_study_show_rung(l->show, count_runs(l, &open), l->step);
        all += open;
        if (open > 0) {
            /* That of an earlier end, which the study has no longer reached. */
            unlink(pm_arena_printf(l->s->arena, "%s/best.json", l->s->folder));
            PM_TRY(train_rung(l));
        }
    }
    if (all == 0)
        PM_INFO("sweep", "all runs have results already: nothing is left to train");
out:
    return err;
}

int pm_study_run(const struct pm_study *s, struct pm_study_results *r,
                 const struct pm_study_run_options *o, int *stopped)
{
    struct loop l = {
        .s = s, .r = r, .o = o,
        .processes = pm_calloc((size_t)s->workers_count, sizeof *l.processes),
        .alive = pm_calloc((size_t)s->points_count, sizeof *l.alive),
        .page_at = -INFINITY,
    };
    int err = PM_OK;

    *stopped = 0;
    pm_study_board_start(s);
    pm_study_show_start(s, r, l.processes, s->workers_count, &l.show);
    PM_TRY(train_all(&l));
    pm_study_show_end(&l.show);
    if (l.why[0])
        PM_TRY(pm_fail(PM_EFAIL, "sweep: --stop-on-error: %s", l.why));
    *stopped = l.signal;
    if (!l.stopping)
        PM_TRY(write_best(&l));
out:
    if (err < 0)
        end_all(&l);
    write_end(s);
    pm_study_show_end(&l.show);
    for (int w = 0; w < s->workers_count; w++)
        pm_study_forget(&l.processes[w]);
    pm_free(l.processes);
    pm_free(l.alive);
    return err;
}
