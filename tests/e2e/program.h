/* Runs the program for tests of failures: its exit code, its output and its files. A report of a
 * sanitizer fails any test. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "base/unit.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char *folder; /* of the test program; it holds all files */

struct result {
    int code; /* exit code; -number when a signal ended it */
    char *out, *err;
};

/* Differences from a run by a user; zero: none. */
struct how {
    const char *environment; /* "A=1 B=2" before the command */
    rlim_t largest_file;     /* most bytes of any file; writing more fails as on a full disk */
    bool as_nobody;          /* without root's permission to write everywhere */
};

/* Formats the path "FOLDER/..." into one of sixteen static buffers. */
PM_PRINTF(1, 2) static inline const char *in(const char *format, ...)
{
    static char text[16][1024];
    static int next;
    va_list ap;

    next = (next + 1) % 16;
    int n = snprintf(text[next], sizeof text[next], "%s/", folder);
    va_start(ap, format);
    vsnprintf(text[next] + n, sizeof text[next] - (size_t)n, format, ap);
    va_end(ap);
    return text[next];
}

static inline void put_text(const char *path, const char *text)
{
    if (pm_file_write(path, text, strlen(text)) < 0)
        fail_msg("%s", pm_error_text());
}

static inline char *get_text(const char *path)
{
    char *text = NULL;

    if (pm_file_read(path, &text, NULL) < 0)
        fail_msg("%s", pm_error_text());
    return text;
}

static inline void give_up_rights(void)
{
    if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0))
        _exit(126);
}

/* Undoes in a child what a shell sets for jobs in the background: it ignores SIGINT and SIGQUIT. */
static inline void reset_signals(void)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
}

/* Starts the program with exec, so that signals can be sent to its process number. */
static inline pid_t start(const struct how *how, const char *name, const char *arguments)
{
    struct pm_str command = { 0 };
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    reset_signals();
    pm_str_add(&command, "exec env %s \"$PUMICE_PROGRAM\" %s >'%s.out' 2>'%s.err' </dev/null",
               how && how->environment ? how->environment : "", arguments, name, name);
    if (how && how->as_nobody)
        give_up_rights();
    if (how && how->largest_file) {
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){ how->largest_file, how->largest_file });
    }
    execl("/bin/sh", "sh", "-c", command.text, (char *)NULL);
    _exit(127);
}

static inline struct result finish(pid_t pid, const char *name)
{
    struct result r = { 0 };
    char path[1024];
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    r.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    snprintf(path, sizeof path, "%s.out", name);
    r.out = get_text(path);
    snprintf(path, sizeof path, "%s.err", name);
    r.err = get_text(path);
    if (strstr(r.err, "Sanitizer") || strstr(r.err, "runtime error:"))
        fail_msg("%s", r.err);
    return r;
}

/* Runs the program to its end; arguments are in shell syntax. */
PM_PRINTF(2, 3) static inline struct result run(const struct how *how, const char *format, ...)
{
    char arguments[4096];
    char name[512];
    va_list ap;

    snprintf(name, sizeof name, "%s", in("run"));
    va_start(ap, format);
    vsnprintf(arguments, sizeof arguments, format, ap);
    va_end(ap);
    return finish(start(how, name, arguments), name);
}

static inline void drop(struct result *r)
{
    pm_free(r->out);
    pm_free(r->err);
    *r = (struct result){ 0 };
}

/* Number of error lines ("error: ...") that the program printed, and the last of them. A failed
 * run must print one. */
static inline int error_lines(const struct result *r, const char **last)
{
    int count = 0;

    *last = "";
    for (const char *line = r->err; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, "error: ", 7) == 0) {
            count++;
            *last = line;
        }
    return count;
}

/* Checks the exit code. For failures it also checks that there is one line of error with each of
 * the texts (NULL is skipped). Frees the result. */
static inline void check_result(struct result r, int code, const char *const *parts, size_t count,
                                const char *file, int line)
{
    const char *last;
    int errors = error_lines(&r, &last);

    if (r.code != code) {
        print_message("%s:%d: exit code %d, %d is right: %s\n%s\n", file, line, r.code, code, r.err,
                      r.out);
        fail();
    }
    if (errors != (code >= 1 && code <= 4)) {
        print_message("%s:%d: %d lines of errors: %s\n", file, line, errors, r.err);
        fail();
    }
    for (size_t i = 0; i < count; i++)
        if (parts[i] && parts[i][0] && !strstr(code ? last : r.err, parts[i])) {
            print_message("%s:%d: \"%s\" is not in: %s\n", file, line, parts[i],
                          code ? last : r.err);
            fail();
        }
    drop(&r);
}

#define check(result, code, ...)                                                                   \
    do {                                                                                           \
        const char *const parts_[] = { "", __VA_ARGS__ };                                          \
        check_result(result, code, parts_, PM_COUNT(parts_), __FILE__, __LINE__);                  \
    } while (0)

/* Trains the small net of make_world in FOLDER/NAME, with further arguments. */
static inline struct result train_net(const struct how *how, const char *name, const char *more)
{
    return run(how, "train %s run.folder=%s %s", in("net.json"), in("%s", name), more);
}

/* Counts and prints the files below path whose names contain ".tmp-". */
static inline int temporaries(const char *path)
{
    struct pm_arena *a = pm_arena_create();
    char **names = NULL;
    size_t n = 0;
    int found = 0;

    if (pm_is_folder(path) && pm_list_folder(a, path, &names, &n) < 0)
        fail_msg("%s", pm_error_text());
    for (size_t i = 0; i < n; i++) {
        const char *inner = pm_arena_printf(a, "%s/%s", path, names[i]);
        if (strstr(names[i], ".tmp-")) {
            print_message("left behind: %s\n", inner);
            found++;
        }
        if (pm_is_folder(inner))
            found += temporaries(inner);
    }
    pm_arena_destroy(&a);
    return found;
}

/* True when an event file of the folder has exactly this tag. */
static inline bool has_tag(const char *path, const char *tag)
{
    struct pm_arena *a = pm_arena_create();
    const size_t length = strlen(tag);
    char **names = NULL, *bytes;
    size_t n = 0, size;
    bool found = false;

    if (pm_list_folder(a, path, &names, &n) < 0)
        fail_msg("%s", pm_error_text());
    for (size_t i = 0; i < n; i++) {
        if (strncmp(names[i], "events.", 7) != 0)
            continue;
        if (pm_file_read(pm_arena_printf(a, "%s/%s", path, names[i]), &bytes, &size) < 0)
            fail_msg("%s", pm_error_text());
        for (size_t at = 0; at + length < size; at++)
            found |= memcmp(bytes + at, tag, length) == 0 &&
                     !isalnum((unsigned char)bytes[at + length]) && bytes[at + length] != '_';
        pm_free(bytes);
    }
    pm_arena_destroy(&a);
    return found;
}

/* The JSON object that a --json run printed. */
static inline cJSON *json_of(const struct result *r)
{
    cJSON *json = cJSON_Parse(r->out);

    if (!cJSON_IsObject(json))
        fail_msg("no JSON object: '%s' (%s)", r->out, r->err);
    return json;
}

static inline double number_of(const cJSON *object, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);

    if (!cJSON_IsNumber(v))
        fail_msg("no number %s", key);
    return v->valuedouble;
}

/* Reads a number from the line of this kind and step in FOLDER/NAME/metrics.jsonl; NAN if there is
 * no such line. */
static inline double line_number(const char *name, const char *kind, int step, const char *key)
{
    char *text = get_text(in("%s/metrics.jsonl", name)), *save = NULL;
    double value = NAN;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        cJSON *o = cJSON_Parse(line);

        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(o, "kind")), kind) == 0 &&
            number_of(o, "step") == step)
            value = number_of(o, key);
        cJSON_Delete(o);
    }
    pm_free(text);
    return value;
}

/* Of a training step. */
static inline double logged(const char *name, int step, const char *key)
{
    return line_number(name, "train", step, key);
}

/* Of an evaluation inside of training. */
static inline double logged_eval(const char *name, int step, const char *key)
{
    return line_number(name, "eval", step, key);
}

/* The losses of two runs differ by at most this part in the steps first..last. */
static inline void same_losses(const char *a, const char *b, int first, int last, double most)
{
    for (int k = first; k <= last; k++) {
        const double x = logged(a, k, "loss"), y = logged(b, k, "loss");

        if (!(fabs(x - y) <= most * fabs(x)))
            fail_msg("step %d: the loss is %.9g in %s and %.9g in %s", k, x, a, y, b);
    }
}

/* Whether two files, which must exist, have the same bytes. */
static inline bool are_same(const char *a, const char *b)
{
    char *x = NULL, *y = NULL;
    size_t n = 0, m = 0;
    bool same;

    if (pm_file_read(a, &x, &n) < 0 || pm_file_read(b, &y, &m) < 0)
        fail_msg("%s", pm_error_text());
    same = n == m && memcmp(x, y, n) == 0;
    pm_free(x);
    pm_free(y);
    return same;
}

static inline void same_bytes(const char *a, const char *b)
{
    if (!are_same(a, b))
        fail_msg("%s and %s differ", a, b);
}

/* A net whose training step takes a millisecond; each run sets run.folder. */
static const char small_net[] =
    "{ \"model\": { \"layers\": [\n"
    "  { \"name\": \"conv1\", \"layer\": \"conv2d\", \"filters\": 4, \"stride\": 2 },\n"
    "  { \"name\": \"norm1\", \"layer\": \"batch_norm\", \"activation\": \"relu\" },\n"
    "  { \"name\": \"pool\", \"layer\": \"max_pool\", \"kernel\": 2, \"stride\": 2 },\n"
    "  { \"name\": \"drop\", \"layer\": \"dropout\", \"keep\": 0.8 },\n"
    "  { \"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 4 } ] },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"input\": { \"preprocessing\": \"cifarnet\", \"size\": 16 },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.01 },\n"
    "  \"run\": { \"steps\": 3, \"batch_size\": 8, \"log_every_steps\": 1 },\n"
    "  \"eval\": { \"batch_size\": 8 } }\n";

/* Writes FOLDER/NAME. Each %s in the text becomes FOLDER. */
static inline void put_folder_text(const char *name, const char *text)
{
    struct pm_str json = { 0 };
    const char *next;

    for (; (next = strstr(text, "%s")) != NULL; text = next + 2)
        pm_str_add(&json, "%.*s%s", (int)(next - text), text, folder);
    pm_str_add(&json, "%s", text);
    put_text(in("%s", name), json.text);
    pm_str_free(&json);
}

static inline void put_net(const char *text)
{
    put_folder_text("net.json", text);
}

/* What `pumice eval --json` prints for FOLDER/NAME, with further options. The caller frees it. */
static inline cJSON *eval_report(const char *name, const char *more)
{
    struct result r = run(NULL, "eval %s run.folder=%s %s --json", in("net.json"), in("%s", name),
                          more);
    cJSON *report = json_of(&r);

    check(r, 0);
    return report;
}

/* A metric of FOLDER/NAME on the training split, with further options. */
static inline double eval_metric(const char *name, const char *key, const char *more)
{
    char text[512];
    cJSON *report;

    snprintf(text, sizeof text, "data.eval_split=train %s", more);
    report = eval_report(name, text);
    const double value = number_of(cJSON_GetObjectItem(report, "metrics"), key);

    cJSON_Delete(report);
    return value;
}

/* Makes FOLDER with net.json and, when asked, drawn shapes in FOLDER/data. */
static inline int make_world(bool shapes)
{
    if (!getenv("PUMICE_PROGRAM")) {
        print_message("PUMICE_PROGRAM does not name the program\n");
        return -1;
    }
    folder = make_folder();
    chmod(folder, 0755);
    setenv("XDG_CACHE_HOME", in("cache"), 1);
    put_net(small_net);
    if (shapes)
        check(run(NULL, "dataset make shapes %s size=16 train=40 validation=8 test=20", in("data")),
              0);
    return 0;
}

/* Draws shapes into FOLDER/data, `size` pixels high and wide, and writes FOLDER/net.json. Returns
 * -1 if there is no program to test. */
static inline int make_shapes(const char *net, int size, int train, int test)
{
    if (make_world(false) < 0)
        return -1;
    check(run(NULL, "dataset make shapes %s size=%d train=%d validation=2 test=%d", in("data"),
              size, train, test), 0);
    put_net(net);
    return 0;
}

static inline int drop_world(void **state)
{
    (void)state;
    if (folder)
        drop_folder(folder);
    return 0;
}

#endif
