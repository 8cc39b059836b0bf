/* Log: one line per message, to standard error and, with the time before it, to a file.
 *
 * PM_LOG=debug sets the level. PM_LOG=info,vulkan=trace also sets the level of one subsystem. A
 * level set by pm_log_set_level (-v, -q) replaces the environment's general level, not its
 * subsystems' levels. */
#include <pumice/base.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static const char *const level_names[] = { "error", "warn", "info", "debug", "trace" };

static struct {
    int general;
    int rule_count;
    struct {
        char subsystem[32];
        int level;
    } rules[32];
} filter = { .general = PM_LEVEL_INFO };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything below, and of writing */
static FILE *log_copy;
static char prefix[96];
static void (*hook_before)(void), (*hook_after)(void);

static int level_of(const char *name)
{
    for (size_t i = 0; i < PM_COUNT(level_names); i++)
        if (strcasecmp(name, level_names[i]) == 0)
            return (int)i;
    return -1;
}

static void read_rule(char *rule)
{
    char *equals = strchr(rule, '=');
    int level = level_of(equals ? equals + 1 : rule);

    if (level < 0) {
        char plain[256];
        pm_printable(plain, sizeof plain, rule);
        fprintf(stderr, "warning: log: PM_LOG: '%s' is not a level (error warn info debug trace)\n",
                plain);
    } else if (!equals) {
        filter.general = level;
    } else if (filter.rule_count < (int)PM_COUNT(filter.rules)) {
        *equals = '\0';
        snprintf(filter.rules[filter.rule_count].subsystem, sizeof filter.rules[0].subsystem, "%s",
                 rule);
        filter.rules[filter.rule_count++].level = level;
    }
}

static void read_env(void)
{
    const char *text = getenv("PM_LOG");
    char copy[1024], *save = NULL;

    if (!text)
        return;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *rule = strtok_r(copy, ", ", &save); rule; rule = strtok_r(NULL, ", ", &save))
        read_rule(rule);
}

bool pm_log_enabled(enum pm_level level, const char *subsystem)
{
    pthread_once(&once, read_env);
    for (int i = 0; i < filter.rule_count; i++)
        if (strcmp(filter.rules[i].subsystem, subsystem) == 0)
            return (int)level <= filter.rules[i].level;
    return (int)level <= __atomic_load_n(&filter.general, __ATOMIC_RELAXED);
}

void pm_log_set_level(enum pm_level level)
{
    pthread_once(&once, read_env);
    __atomic_store_n(&filter.general, (int)level, __ATOMIC_RELAXED);
}

void pm_log_file(FILE *f)
{
    pthread_mutex_lock(&lock);
    log_copy = f;
    pthread_mutex_unlock(&lock);
}

void pm_log_prefix(const char *text)
{
    pthread_mutex_lock(&lock);
    pm_printable(prefix, sizeof prefix, text ? text : "");
    pthread_mutex_unlock(&lock);
}

void pm_log_hooks(void (*before)(void), void (*after)(void))
{
    pthread_mutex_lock(&lock);
    hook_before = before;
    hook_after = after;
    pthread_mutex_unlock(&lock);
}

static void write_copy(const char *line)
{
    char stamp[32];
    struct tm tm;
    time_t now = time(NULL);

    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    fprintf(log_copy, "%s %s\n", stamp, line);
    fflush(log_copy);
}

void pm_log(enum pm_level level, const char *subsystem, const char *fmt, ...)
{
    static const char *const marks[] = { "error: ", "warning: ", "", "debug: ", "trace: " };
    char text[4096], line[4096 + 512]; /* line: with room for escapes */
    va_list ap;

    if (!pm_log_enabled(level, subsystem))
        return;
    int used = snprintf(text, sizeof text, "%s%s: ", marks[level], subsystem);
    va_start(ap, fmt);
    vsnprintf(text + used, sizeof text - (size_t)used, fmt, ap);
    va_end(ap);
    pm_printable(line, sizeof line, text);

    pthread_mutex_lock(&lock);
    if (hook_before)
        hook_before();
    fprintf(stderr, "%s%s\n", prefix, line);
    if (hook_after)
        hook_after();
    if (log_copy)
        write_copy(line);
    pthread_mutex_unlock(&lock);
}
