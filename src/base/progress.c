/* progress: the progress line.
 *
 * On a terminal: carriage return, the text, then blanks over the rest of the old line. The log's
 * hooks erase and redraw it around each log line. No cursor movement is needed, so the only escape
 * codes are colours. Elsewhere: log lines, which also reach the run's log file. */
#include <math.h>
#include <pthread.h>
#include <pumice/progress.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct pm_progress {
    struct pm_progress_options o;
    struct pm_progress *outer; /* the progress that continues when this one ends, or NULL */
    struct pm_progress_point point; /* the last one; done advances between points */
    double clone_rates[PM_MAX_CLONES];
    bool has_point, terminal, colour;
    double seconds_per_unit; /* smoothed; 0 = unknown */
    double started_at, counted_at; /* pm_seconds of the start, and of the last count by
                                    * pm_progress_count */
    double drawn_at;
    int drawn;               /* columns in use on the terminal's line */
};

/* guards `current` below and its terminal line */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pm_progress *current;

/* ---- text ------------------------------------------------------------------------------ */

/* "0:07", "12:34", "3:04:05", "2 d 3 h" */
static void time_text(double seconds, char buf[24])
{
    long long s = seconds < 1e10 ? (long long)(seconds + 0.5) : 0;

    if (seconds >= 1e10)
        snprintf(buf, 24, "years");
    else if (s >= 48 * 3600)
        snprintf(buf, 24, "%lld d %lld h", s / 86400, s / 3600 % 24);
    else if (s >= 3600)
        snprintf(buf, 24, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(buf, 24, "%lld:%02lld", s / 60, s % 60);
}

/* Writes three significant digits: "0.42", "8.3", "1234". */
static void rate_text(double v, char buf[24])
{
    snprintf(buf, 24, v >= 100 ? "%.0f" : v >= 10 ? "%.1f" : "%.2f", v);
}

static void loss_text(double v, char buf[24])
{
    snprintf(buf, 24, fabs(v) >= 1e5 || (v != 0 && fabs(v) < 1e-3) ? "%.3e" : "%.4f", v);
}

/* The parts of the line, in their order. */
enum { COUNT, PERCENT, BAR, LOSS, DECAY, MORE, RATE, SPEED, CLONES, WAIT, LEFT, PARTS };
/* The order in which parts are dropped if the terminal is narrow; the clones lose their names
 * first. */
static const int leave_out[] = { RATE, DECAY, CLONES, BAR, CLONES, WAIT, PERCENT, SPEED, LEFT, MORE,
                                 LOSS };

/* Writes the clones' speeds: "(vulkan:0 800, cpu 434)". */
static void clones_part(const struct pm_progress_options *o, const struct pm_progress_point *point,
                        bool names, char *buf, size_t size)
{
    int count = o->clone_count < PM_MAX_CLONES ? o->clone_count : PM_MAX_CLONES;
    size_t used = 0;
    char rate[24];

    for (int i = 0; i < count && used < size; i++) {
        rate_text(point->clone_images_per_second[i], rate);
        used += (size_t)snprintf(buf + used, size - used, "%s%s%s%s%s", i ? ", " : "(",
                                 names ? o->clones[i] : "", names ? " " : "", rate,
                                 i + 1 == count ? ")" : "");
    }
}

static void make_parts(const struct pm_progress_options *o, const struct pm_progress_point *point,
                       double seconds_left, char parts[PARTS][256])
{
    char number[24];

    memset(parts, 0, PARTS * 256);
    if (o->last) {
        snprintf(parts[COUNT], 256, "%s %llu/%llu", o->unit, (unsigned long long)point->done,
                 (unsigned long long)o->last);
        snprintf(parts[PERCENT], 256, "%3.0f %%",
                 floor(100 * fmin(1, (double)point->done / (double)o->last)));
        strcpy(parts[BAR], "[]");
    } else {
        snprintf(parts[COUNT], 256, "%s %llu", o->unit, (unsigned long long)point->done);
    }
    if (o->loss) {
        loss_text(point->loss, number);
        snprintf(parts[LOSS], 256, "loss %s", number);
        if (point->decay != 0) {
            loss_text(point->decay, number);
            snprintf(parts[DECAY], 256, "(+ %s weight decay)", number);
        }
        snprintf(parts[MORE], 256, "%s", point->more ? point->more : "");
        snprintf(parts[RATE], 256, "lr %.3g", point->lr);
    }
    if (point->rates.images_per_second > 0) {
        rate_text(point->rates.images_per_second, number);
        snprintf(parts[SPEED], 256, "%s %s/s", number, o->speed ? o->speed : "images");
        if (point->rates.wait_share >= 0)
            snprintf(parts[WAIT], 256, "%.0f %% waiting", 100 * point->rates.wait_share);
    }
    if (seconds_left >= 0) {
        time_text(seconds_left, number);
        snprintf(parts[LEFT], 256, "%s left", number);
    }
    if (o->clone_count > 1 && point->clone_images_per_second)
        clones_part(o, point, true, parts[CLONES], 256);
}

static int width_of(char parts[PARTS][256])
{
    int width = 0;

    for (int i = 0; i < PARTS; i++)
        if (parts[i][0])
            width += (int)strlen(parts[i]) + (width ? 2 : 0);
    return width;
}

enum { BAR_SHORTEST = 10, BAR_LONGEST = 30 };

/* Fills the bar, which gets the cells that the other parts leave. */
static void fill_bar(char *part, int cells, double share)
{
    int full = (int)(share * cells);

    part[0] = '[';
    for (int i = 0; i < cells; i++)
        part[1 + i] = i < full ? '#' : '.';
    strcpy(part + 1 + cells, "]");
}

char *pm_progress_text(const struct pm_progress_options *o, const struct pm_progress_point *point,
                       double seconds_left, int width, char *buf, size_t size)
{
    char parts[PARTS][256];
    bool names = true;
    size_t used = 0;

    make_parts(o, point, seconds_left, parts);
    if (width < 0)
        parts[BAR][0] = 0;
    for (size_t i = 0; width >= 0 && i < PM_COUNT(leave_out); i++) {
        int room = width - width_of(parts);
        if (room >= (parts[BAR][0] ? BAR_SHORTEST : 0))
            break;
        if (leave_out[i] == CLONES && parts[CLONES][0] && names)
            clones_part(o, point, names = false, parts[CLONES], 256);
        else
            parts[leave_out[i]][0] = 0;
    }
    if (parts[BAR][0]) {
        int room = width - width_of(parts);
        fill_bar(parts[BAR], room < BAR_LONGEST ? room : BAR_LONGEST,
                 fmin(1, (double)point->done / (double)o->last));
    }
    buf[0] = 0;
    for (int i = 0; i < PARTS; i++)
        if (parts[i][0] && used < size)
            used += (size_t)snprintf(buf + used, size - used, "%s%s",
                                     used == 0 ? "" : i == DECAY ? " " : "  ", parts[i]);
    if (width >= 0 && (size_t)width < size)
        buf[width] = 0;
    return buf;
}

/* ---- terminal -------------------------------------------------------------------------- */

int pm_terminal_width(void)
{
    struct winsize w;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0)
        return 79;
    return w.ws_col - 1; /* a full line would wrap on some terminals */
}

static double seconds_left(const struct pm_progress *p)
{
    if (!p->o.last || p->seconds_per_unit <= 0 || p->point.done > p->o.last)
        return -1;
    return (double)(p->o.last - p->point.done) * p->seconds_per_unit;
}

/* Writes the text, with the bar's full cells in colour. */
static void write_text(const struct pm_progress *p, const char *text)
{
    const char *bar = p->colour ? strstr(text, "[#") : NULL;
    size_t full = bar ? strspn(bar + 1, "#") : 0;

    if (!bar) {
        fputs(text, stderr);
        return;
    }
    fprintf(stderr, "%.*s\033[32m%.*s\033[0m%s", (int)(bar + 1 - text), text, (int)full, bar + 1,
            bar + 1 + full);
}

/* Call it under the lock. */
static void draw(struct pm_progress *p)
{
    struct pm_progress_options o = p->o;
    char raw[1024], text[1024], unit[64];
    int width = pm_terminal_width(), length;

    snprintf(unit, sizeof unit, "%s %s", o.what, o.unit);
    if (p->outer)
        o.unit = unit;
    o.loss = o.loss && p->has_point;
    if (width > (int)sizeof text - 1)
        width = (int)sizeof text - 1;
    pm_progress_text(&o, &p->point, seconds_left(p), width, raw, sizeof raw);
    length = (int)pm_printable(text, (size_t)(width > 0 ? width : 0) + 1, raw);
    fputc('\r', stderr);
    write_text(p, text);
    if (p->drawn > width) /* the window became narrower */
        p->drawn = width;
    if (p->drawn > length)
        fprintf(stderr, "%*s", p->drawn - length, "");
    fflush(stderr);
    p->drawn = length;
    p->drawn_at = pm_seconds();
}

/* Call it under the lock. */
static void wipe(struct pm_progress *p)
{
    if (p->drawn > 0)
        fprintf(stderr, "\r%*s\r", p->drawn, "");
    p->drawn = 0;
}

/* The log's hooks: the first takes the lock and the second releases it. */
static void before_log(void)
{
    pthread_mutex_lock(&lock);
    if (current)
        wipe(current);
}

static void after_log(void)
{
    if (current && current->drawn_at > 0)
        draw(current);
    pthread_mutex_unlock(&lock);
}

/* ---- the object ------------------------------------------------------------------------ */

bool pm_is_terminal(void)
{
    const char *term = getenv("TERM");

    return isatty(STDERR_FILENO) && term && term[0] && strcmp(term, "dumb") != 0;
}

struct pm_progress *pm_progress_start(const struct pm_progress_options *o)
{
    struct pm_progress *p = pm_calloc(1, sizeof *p);
    const char *no_color = getenv("NO_COLOR");

    p->o = *o;
    p->point.done = o->first;
    p->started_at = p->counted_at = pm_seconds();
    p->terminal = pm_is_terminal() && pm_log_enabled(PM_LEVEL_INFO, o->what);
    p->colour = p->terminal && !(no_color && no_color[0]);
    if (p->terminal) {
        pthread_mutex_lock(&lock);
        p->outer = current;
        if (p->outer)
            wipe(p->outer);
        current = p;
        draw(p);
        pthread_mutex_unlock(&lock);
        pm_log_hooks(before_log, after_log);
    }
    return p;
}

static void print_point(const struct pm_progress *p)
{
    char text[1024], step[64] = "";

    if (p->point.rates.seconds_per_step > 0)
        snprintf(step, sizeof step, "  %.3f s/%s", p->point.rates.seconds_per_step, p->o.unit);
    pm_progress_text(&p->o, &p->point, seconds_left(p), -1, text, sizeof text);
    PM_INFO(p->o.what, "%s%s", text, step);
}

void pm_progress_point(struct pm_progress *p, const struct pm_progress_point *point)
{
    pthread_mutex_lock(&lock);
    p->point = *point;
    p->has_point = true;
    if (point->clone_images_per_second && p->o.clone_count <= PM_MAX_CLONES) {
        memcpy(p->clone_rates, point->clone_images_per_second,
               (size_t)p->o.clone_count * sizeof *p->clone_rates);
        p->point.clone_images_per_second = p->clone_rates;
    } else {
        p->point.clone_images_per_second = NULL;
    }
    if (point->rates.seconds_per_step > 0)
        p->seconds_per_unit = p->seconds_per_unit > 0 ? 0.7 * p->seconds_per_unit +
                                                            0.3 * point->rates.seconds_per_step
                                                      : point->rates.seconds_per_step;
    if (p->terminal)
        draw(p);
    pthread_mutex_unlock(&lock);
    if (!p->terminal)
        print_point(p);
}

void pm_progress_step(struct pm_progress *p, uint64_t done)
{
    double now = pm_seconds();

    pthread_mutex_lock(&lock);
    p->point.done = done;
    if (!p->has_point && done > p->o.first)
        p->seconds_per_unit = (now - p->started_at) / (double)(done - p->o.first);
    if (p->terminal && now - p->drawn_at >= 0.1)
        draw(p);
    pthread_mutex_unlock(&lock);
}

enum { SECONDS_A_LINE = 10 }; /* if there is no terminal */

void pm_progress_count(struct pm_progress *p, uint64_t done, uint64_t images, double waited)
{
    double now = pm_seconds(), since = now - p->started_at;
    bool line = !p->terminal && now - p->counted_at >= SECONDS_A_LINE;

    if (since > 0 && (line || (p->terminal && now - p->counted_at >= 0.5))) {
        p->point.rates.images_per_second = (double)images / since;
        p->point.rates.wait_share = waited < 0 ? -1 : fmin(1, waited / since);
        p->counted_at = now;
    }
    pm_progress_step(p, done);
    if (line)
        print_point(p);
}

void pm_progress_end(struct pm_progress **p)
{
    if (!*p)
        return;
    if ((*p)->terminal) {
        struct pm_progress *outer = (*p)->outer;

        if (!outer)
            pm_log_hooks(NULL, NULL);
        pthread_mutex_lock(&lock);
        current = outer;
        if (outer) {
            wipe(*p);
            draw(outer);
        } else if ((*p)->drawn > 0) {
            draw(*p); /* the last counts may have come too soon after the one that was drawn */
            fputc('\n', stderr);
        }
        pthread_mutex_unlock(&lock);
    }
    pm_free(*p);
    *p = NULL;
}
