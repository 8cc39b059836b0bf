/* study_worker: starts processes that train, and reads how they end. */
#include "study/study_worker.h"

#include <pumice/checkpoint.h>

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double READ_SECONDS = 0.2; /* between two readings of a run's metrics */
enum { MOST_RESTARTS = 3, MOST_WAIT = 60 /* seconds */ };

/* ---- the config -------------------------------------------------------------------------- */

/* Returns the override "devices=[...]", with the number of threads of CPU devices that set none. */
static const char *devices_text(struct pm_arena *a, const struct pm_study_worker *w)
{
    cJSON *list = cJSON_CreateArray(), *d;

    cJSON_ArrayForEach(d, w->devices) {
        const char *name = cJSON_GetStringValue(d);
        cJSON *copy = name ? cJSON_CreateObject() : cJSON_Duplicate(d, true);

        if (name)
            cJSON_AddStringToObject(copy, "name", name);
        name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(copy, "name"));
        if (w->threads > 0 && name && strcmp(name, "cpu") == 0 &&
            !cJSON_HasObjectItem(copy, "threads"))
            cJSON_AddNumberToObject(copy, "threads", w->threads);
        cJSON_AddItemToArray(list, copy);
    }
    char *text = cJSON_PrintUnformatted(list);
    const char *out = pm_arena_printf(a, "devices=%s", text);
    cJSON_free(text);
    cJSON_Delete(list);
    return out;
}

size_t pm_study_worker_overrides(const struct pm_study *s, const struct pm_study_worker *w,
                                 const char *const *overrides, size_t n, const char ***out)
{
    const char **list = *out = pm_arena_alloc(s->arena, (n + 3) * sizeof *list);
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        list[count++] = overrides[i];
    if (w->devices)
        list[count++] = devices_text(s->arena, w);
    if (w->data_threads > 0) /* else each of the processes would read with all cores */
        list[count++] = pm_arena_printf(s->arena, "data.threads=%d", w->data_threads);
    return count;
}

static const char *config_path(const struct pm_study *s, const struct pm_study_process *p)
{
    return pm_arena_printf(s->arena, "%s/configs/%s.json", s->folder, p->name);
}

static int write_config(const struct pm_study *s, const struct pm_study_worker *w,
                        const struct pm_study_process *p, const char *const *overrides, size_t n,
                        const struct pm_open_sections *open)
{
    const char **list, *path = config_path(s, p);
    size_t count = pm_study_worker_overrides(s, w, overrides, n, &list);
    struct pm_config *c = NULL;
    cJSON *dump = NULL;
    char *text = NULL;
    int err = PM_OK;

    if (p->step > 0)
        list[count++] = pm_arena_printf(s->arena, "run.pause_step=%lld", (long long)p->step);
    PM_TRY(pm_study_config(s, p->point, p->repeat, list, count, open, &c));
    dump = pm_config_dump(c);
    text = pm_json_print(dump);
    PM_TRY(pm_make_folders(pm_arena_printf(s->arena, "%s/configs", s->folder)));
    PM_TRY(pm_make_folders(pm_arena_printf(s->arena, "%s/logs", s->folder)));
    PM_TRY(pm_file_write(path, text, strlen(text)));
out:
    pm_free(text);
    cJSON_Delete(dump);
    pm_config_destroy(&c);
    return err;
}

/* ---- the process ------------------------------------------------------------------------- */

static const char *log_path(const struct pm_study *s, const struct pm_study_process *p,
                            const char *kind)
{
    return pm_arena_printf(s->arena, "%s/logs/%s.%s", s->folder, p->name, kind);
}

/* Signals that the study catches have their usual effect; those that it ignores stay ignored. */
static void reset_signals(void)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
    struct sigaction is;

    for (size_t i = 0; i < PM_COUNT(numbers); i++)
        if (sigaction(numbers[i], NULL, &is) == 0 && is.sa_handler != SIG_IGN)
            signal(numbers[i], SIG_DFL);
}

/* In the new process: signals, the standard streams, then the program. All signals are blocked
 * until no handler of the study can take them. The process gets SIGTERM when its parent dies. */
static void become(char *const *words, int out, int errors, pid_t parent, const sigset_t *mask)
{
    const int none = open("/dev/null", O_RDONLY | O_CLOEXEC);

    setpgid(0, 0);
    reset_signals();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(128 + SIGTERM); /* it died before prctl */
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (dup2(none, 0) < 0 || dup2(out, 1) < 0 || dup2(errors, 2) < 0)
        _exit(1);
    execv(words[0], words);
    _exit(127);
}

static int spawn(const struct pm_study *s, struct pm_study_process *p)
{
    const char *path = config_path(s, p);
    const char *out_path = log_path(s, p, "json"), *log = log_path(s, p, "txt");
    char self[4096];
    char *words[] = { self, "train", (char *)(uintptr_t)path, "--json", NULL };
    const pid_t parent = getpid();
    int out = -1, errors = -1, err = PM_OK;
    sigset_t all, mask;

    PM_TRY(pm_own_path(self, sizeof self));
    out = open(out_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    errors = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (out < 0 || errors < 0)
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be opened: %s", out < 0 ? out_path : log,
                       strerror(errno)));
    pm_curves_free(&p->curves); /* train may shorten metrics.jsonl */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &mask);
    p->pid = fork();
    if (p->pid == 0)
        become(words, out, errors, parent, &mask);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (p->pid < 0) {
        p->pid = 0;
        PM_TRY(pm_fail(PM_EFAIL, "sweep: no process can be started: %s", strerror(errno)));
    }
    setpgid(p->pid, p->pid); /* here too: whichever process comes first */
out:
    if (out >= 0)
        close(out);
    if (errors >= 0)
        close(errors);
    return err;
}

/* Starts the process, or lets it wait: a study that was killed leaves processes that save and end
 * by themselves. */
static int spawn_or_wait(const struct pm_study *s, struct pm_study_process *p)
{
    p->waits = pm_run_is_locked(p->run);
    if (p->waits && pm_seconds() > p->began + MOST_WAIT)
        return pm_fail(PM_EFAIL, "%s: another process trains in this folder: wait for its end, or "
                       "stop it", p->run);
    return p->waits ? PM_OK : spawn(s, p);
}

int pm_study_start(const struct pm_study *s, const struct pm_study_worker *w, int point, int repeat,
                   int64_t step, const char *const *overrides, size_t n,
                   const struct pm_open_sections *open, struct pm_study_process *p)
{
    int err = PM_OK;

    *p = (struct pm_study_process){
        .point = point, .repeat = repeat, .step = step, .began = pm_seconds(),
        .name = pm_study_run_name(s, point, repeat),
    };
    p->run = pm_arena_printf(s->arena, "%s/%s", s->folder, p->name);
    PM_TRY(write_config(s, w, p, overrides, n, open));
    PM_TRY(spawn_or_wait(s, p));
out:
    if (err < 0)
        pm_study_forget(p);
    return err;
}

/* ---- the end ----------------------------------------------------------------------------- */

/* Returns the error that train --json has printed, in the arena; else what the exit code says. */
static const char *error_of(const struct pm_study *s, const struct pm_study_process *p, int code)
{
    const char *path = log_path(s, p, "json"), *said = NULL;
    char *text = NULL;
    cJSON *o = NULL;

    if (pm_text_read(path, PM_MOST_TEXT, &text) == PM_OK && (o = cJSON_Parse(text)))
        said = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "error"));
    said = said ? pm_arena_strdup(s->arena, said)
                : pm_arena_printf(s->arena, "train ended with exit code %d: see %s", code,
                                  log_path(s, p, "txt"));
    cJSON_Delete(o);
    pm_free(text);
    return said;
}

/* The metric's value of the last evaluation, of a run that has ended. */
static enum pm_study_end finish(const struct pm_study *s, struct pm_study_process *p,
                                const char *metrics, struct pm_study_result *out)
{
    const struct pm_curve *c;

    c = pm_curves_find(&p->curves, "eval", s->metric);
    if (c && c->last_step == p->curves.last_step) {
        out->value = c->last;
        return PM_STUDY_DONE;
    }
    out->message = pm_arena_printf(s->arena, "the last evaluation, of step %llu, has no finite "
                                   "value of %s: see %s",
                                   (unsigned long long)p->curves.last_step, s->metric, metrics);
    return PM_STUDY_FAILED;
}

/* The signal by which the process has ended, or that train has caught; 0: none. */
static int signal_of(int status)
{
    return WIFSIGNALED(status)                                 ? WTERMSIG(status)
           : WIFEXITED(status) && WEXITSTATUS(status) > 128 ? WEXITSTATUS(status) - 128
                                                               : 0;
}

/* What becomes of a run whose process has ended with this status. */
static enum pm_study_end judge(const struct pm_study *s, struct pm_study_process *p, int status,
                               const char *metrics, struct pm_study_result *out)
{
    const int number = signal_of(status);

    if (number && p->asked)
        return PM_STUDY_STOPPED;
    if (number && p->restarts++ < MOST_RESTARTS && spawn(s, p) == PM_OK) {
        PM_WARN("sweep", "%s: its process was ended by signal %d and is started again", p->name,
                number);
        return PM_STUDY_RUNS;
    }
    if (status == 0)
        return finish(s, p, metrics, out);
    out->message = number ? pm_arena_printf(s->arena, "its process was ended by signal %d each of "
                                            "%d times: see %s (signal 9 often means that memory "
                                            "ran out)", number, p->restarts, log_path(s, p, "txt"))
                          : error_of(s, p, WEXITSTATUS(status));
    return PM_STUDY_FAILED;
}

/* Starts a process that waits, if it can. */
static enum pm_study_end poll_waiting(const struct pm_study *s, struct pm_study_process *p,
                                      struct pm_study_result *out)
{
    if (p->asked)
        return PM_STUDY_STOPPED;
    if (spawn_or_wait(s, p) == PM_OK)
        return PM_STUDY_RUNS;
    out->message = pm_arena_strdup(s->arena, pm_error_text());
    return PM_STUDY_FAILED;
}

enum pm_study_end pm_study_poll(const struct pm_study *s, struct pm_study_process *p,
                                struct pm_study_result *out)
{
    char metrics[4096];
    int status = 0;
    pid_t ended;

    *out = (struct pm_study_result){
        .point = p->point, .repeat = p->repeat, .step = p->step, .value = NAN,
        .seconds = pm_seconds() - p->began,
    };
    if (p->waits)
        return poll_waiting(s, p, out);
    do
        ended = waitpid(p->pid, &status, WNOHANG);
    while (ended < 0 && errno == EINTR);
    if (ended < 0) {
        out->message = pm_arena_printf(s->arena, "the end of its process is not known: %s",
                                       strerror(errno));
        p->pid = 0;
        return PM_STUDY_FAILED;
    }
    if (ended == 0 && pm_seconds() < p->read_at + READ_SECONDS)
        return PM_STUDY_RUNS;
    p->read_at = pm_seconds();
    snprintf(metrics, sizeof metrics, "%s/metrics.jsonl", p->run);
    if (ended) /* the whole file: it may have been written anew while it was read */
        pm_curves_free(&p->curves);
    pm_curves_read(&p->curves, metrics);
    if (ended == 0)
        return PM_STUDY_RUNS;
    p->pid = 0;
    return judge(s, p, status, metrics, out);
}

void pm_study_stop(struct pm_study_process *p)
{
    p->asked = true;
    if (p->pid > 0)
        kill(p->pid, SIGTERM);
}

void pm_study_forget(struct pm_study_process *p)
{
    pm_curves_free(&p->curves);
    *p = (struct pm_study_process){ 0 };
}
