/* rate_test: the learning rate range test (Smith 2017, "Cyclical learning rates for training neural
 * networks"). The rate grows by the same factor in each step. While it is too small the loss stays,
 * then it falls, then it becomes unstable and grows. Values start as in `train`, from the seed or
 * from init.checkpoint; nothing is saved.
 *
 * The loss of a batch is noisy. The test stops when a running mean of it (decay 0.9, with Adam's
 * correction of its start) exceeds 4 times its lowest value. The proposal uses the mean over a
 * centred window instead, because a running mean lags behind the rate. It is a tenth of the rate at
 * which that mean is lowest: there the loss is already about to grow, and a tenth is the usual
 * distance from it. It is rounded to one digit, because the test does not tell more. */
#include <pumice/train.h>

#include "measure/steps.h"

#include <pumice/report.h>

#include <cjson/cJSON.h>
#include <math.h>

/* Steps on each side of the window; the share of the steps in which nothing can diverge yet. */
enum { WINDOW_PARTS = 16, FIRST_PARTS = 10 };
static const double DECAY = 0.9, DIVERGED = 4, FELL = 0.02, ERRORS = 4;

struct test {
    struct pm_steps s;
    struct pm_rate_point *points; /* owned */
    int count;
    bool diverged;
};

/* ---- measuring -------------------------------------------------------------------------- */

static int measure(struct test *t, const struct pm_rate_options *o)
{
    double mean = 0, lowest = INFINITY;
    int err = PM_OK;

    for (int i = 0; i < o->steps && !t->diverged; i++) {
        const double rate = o->from * pow(o->to / o->from, (double)i / (o->steps - 1));

        t->s.rate = (float)rate;
        PM_TRY(pm_steps_submit(&t->s));
        PM_TRY(pm_steps_collect(&t->s));
        if (!t->s.last.finite || !isfinite(t->s.last.loss)) {
            t->diverged = true;
            break;
        }
        t->points[t->count++] = (struct pm_rate_point){ .rate = rate, .loss = t->s.last.loss };
        mean = DECAY * mean + (1 - DECAY) * t->s.last.loss;
        const double running = mean / (1 - pow(DECAY, i + 1));
        lowest = fmin(lowest, running);
        t->diverged = i >= o->steps / FIRST_PARTS && running > DIVERGED * lowest;
    }
out:
    return err;
}

/* ---- judging ---------------------------------------------------------------------------- */

static void smooth(struct test *t, int steps)
{
    const int side = steps / WINDOW_PARTS;

    for (int i = 0; i < t->count; i++) {
        const int first = i > side ? i - side : 0;
        const int last = i + side < t->count ? i + side : t->count - 1;
        double sum = 0;

        for (int k = first; k <= last; k++)
            sum += t->points[k].loss;
        t->points[i].smooth = sum / (last - first + 1);
    }
}

static double one_digit(double v)
{
    const double unit = pow(10, floor(log10(v)));

    return round(v / unit) * unit;
}

/* Returns the point with the lowest mean; -1: none. */
static int lowest_of(const struct test *t)
{
    int lowest = -1;

    for (int i = 0; i < t->count; i++)
        if (lowest < 0 || t->points[i].smooth < t->points[lowest].smooth)
            lowest = i;
    return lowest;
}

/* Whether the mean falls from the first window to its lowest point by more than the noise of the
 * batches: by 2 %, and by 4 standard errors of the difference of two windows. The noise is
 * estimated from the differences of successive losses, which the slow fall hardly changes. */
static bool does_fall(const struct test *t, int lowest, int steps)
{
    const int window = 2 * (steps / WINDOW_PARTS) + 1;
    double first = 0, squares = 0;

    if (lowest < window || t->count <= window)
        return false;
    for (int i = 0; i < window; i++)
        first += t->points[i].loss / window;
    for (int i = 0; i < lowest; i++)
        squares += pow(t->points[i + 1].loss - t->points[i].loss, 2);
    const double error = sqrt(squares / lowest / window); /* 2 windows; 2 losses per difference */
    return first - t->points[lowest].smooth > fmax(FELL * fabs(first), ERRORS * error);
}

static void add_points(const struct test *t, cJSON *report)
{
    cJSON *list = cJSON_AddArrayToObject(report, "points");

    for (int i = 0; i < t->count; i++) {
        cJSON *o = cJSON_CreateObject();

        cJSON_AddNumberToObject(o, "rate", t->points[i].rate);
        cJSON_AddNumberToObject(o, "loss", t->points[i].loss);
        cJSON_AddNumberToObject(o, "smooth", t->points[i].smooth);
        cJSON_AddItemToArray(list, o);
    }
}

/* Adds what the test found; *proposal is NAN if the loss does not fall. */
static void add_findings(const struct test *t, int steps, cJSON *report, double *proposal,
                         struct pm_str *text)
{
    const int lowest = lowest_of(t);
    const bool falls = does_fall(t, lowest, steps);
    const double at = falls ? t->points[lowest].rate : NAN;

    *proposal = falls ? one_digit(at / 10) : NAN;
    cJSON_AddBoolToObject(report, "diverged", t->diverged);
    cJSON_AddItemToObject(report, "lowest_at", falls ? cJSON_CreateNumber(at) : cJSON_CreateNull());
    cJSON_AddItemToObject(report, "proposal",
                          falls ? cJSON_CreateNumber(*proposal) : cJSON_CreateNull());
    if (!falls)
        pm_str_add(text, "The loss does not fall in this range of rates, so there is no proposal. "
                   "Raise --steps or run.batch_size, or check the data and the labels.");
    else if (lowest >= steps - steps / WINDOW_PARTS - 1)
        pm_str_add(text, "The loss is still falling at the last rate, %.2g: raise --to.",
                   t->points[t->count - 1].rate);
    else
        pm_str_add(text, "The loss is lowest at the rate %.2g and grows above it%s.", at,
                   t->diverged ? " until it diverges" : "");
    cJSON_AddStringToObject(report, "text", text->text);
}

static int write_picture(const struct test *t, const char *path, double proposal, const char *text)
{
    const struct pm_rate_report r = { .name = t->s.c->path, .points = t->points,
                                      .count = t->count, .proposal = proposal, .text = text };
    struct pm_str page = { 0 };
    int err;

    pm_report_rates(&r, &page);
    err = pm_file_write(path, page.text, page.length);
    pm_str_free(&page);
    return err;
}

int pm_rate_test(const struct pm_config *c, const struct pm_rate_options *o, struct cJSON *report)
{
    struct test t = { .points = pm_calloc((size_t)o->steps, sizeof *t.points) };
    struct pm_str text = { 0 };
    double proposal;
    int err = PM_OK;

    PM_TRY(pm_steps_open(&t.s, c, false));
    PM_TRY(pm_steps_clones(&t.s, false));
    PM_TRY(pm_steps_start(&t.s));
    PM_TRY(pm_steps_loader(&t.s));
    PM_TRY(measure(&t, o));
    smooth(&t, o->steps);
    cJSON_AddStringToObject(report, "config", c->path);
    cJSON_AddStringToObject(report, "model", pm_experiment_net_name(c));
    cJSON_AddNumberToObject(report, "batch", c->run.batch_size);
    cJSON_AddNumberToObject(report, "base_lr", c->schedule.base_lr);
    add_findings(&t, o->steps, report, &proposal, &text);
    add_points(&t, report);
    if (o->picture)
        PM_TRY(write_picture(&t, o->picture, proposal, text.text));
out:
    pm_steps_close(&t.s);
    pm_free(t.points);
    pm_str_free(&text);
    return err;
}
