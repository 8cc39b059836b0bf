/* launch_hosts: the hosts of a training: --hosts, host files, and which of them answer. */
#include "jobs/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- lists ------------------------------------------------------------------------------- */

static bool is_name(const char *text, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_.-";

    return length > 0 && length < 256 && text[0] != '-' && strspn(text, letters) >= length;
}

/* Adds a host. number: text of its number of processes, `digits` long; NULL: 1. */
static int add_host(const char *where, const char *name, size_t length, const char *number,
                    size_t digits, struct pm_arena *a, struct pm_launch_hosts *h)
{
    struct pm_launch_host *host = NULL, *list;
    int processes = 1;

    if (!is_name(name, length))
        return pm_fail(PM_ECONFIG, "%s: '%.*s' is not the name of a host: write names of letters, "
                       "digits, '.', '-' and '_', such as big:2,small", where, (int)length, name);
    if (number) {
        processes = digits > 0 && digits < 5 && strspn(number, "0123456789") >= digits
                        ? atoi(number) : 0;
        if (processes < 1 || processes > PM_MOST_PROCESSES)
            return pm_fail(PM_ECONFIG, "%s: host %.*s: '%.*s' is not a number of processes, 1 to "
                           "%d", where, (int)length, name, (int)digits, number,
                           PM_MOST_PROCESSES);
    }
    for (size_t i = 0; i < h->count && !host; i++)
        if (strlen(h->list[i].name) == length && !strncmp(h->list[i].name, name, length))
            host = &h->list[i];
    if (host) {
        host->processes += processes;
        return PM_OK;
    }
    list = pm_arena_alloc(a, (h->count + 1) * sizeof *list);
    if (h->count > 0)
        memcpy(list, h->list, h->count * sizeof *list);
    list[h->count++] = (struct pm_launch_host){
        pm_arena_printf(a, "%.*s", (int)length, name), processes };
    h->list = list;
    return PM_OK;
}

int pm_launch_processes(const struct pm_launch_hosts *h)
{
    int sum = 0;

    for (size_t i = 0; i < h->count; i++)
        sum += h->list[i].processes;
    return sum;
}

size_t pm_launch_others(const struct pm_launch_hosts *h)
{
    size_t count = 0;

    for (size_t i = 0; i < h->count; i++)
        count += !pm_launch_is_here(h->list[i].name);
    return count;
}

static int check_sum(const char *where, const struct pm_launch_hosts *h)
{
    if (h->count == 0)
        return pm_fail(PM_ECONFIG, "%s: no host is named", where);
    if (pm_launch_processes(h) > PM_MOST_PROCESSES)
        return pm_fail(PM_ECONFIG, "%s: %d processes, but a training has at most %d", where,
                       pm_launch_processes(h), PM_MOST_PROCESSES);
    return PM_OK;
}

int pm_launch_read_hosts(const char *text, const char *where, struct pm_arena *a,
                         struct pm_launch_hosts *out)
{
    int err = PM_OK;

    *out = (struct pm_launch_hosts){ 0 };
    for (bool more = true; more;) {
        const size_t whole = strcspn(text, ","), length = strcspn(text, ":,");
        const char *number = length < whole ? text + length + 1 : NULL;

        PM_TRY(add_host(where, text, length, number, number ? whole - length - 1 : 0, a, out));
        more = text[whole] == ',';
        text += whole + more;
    }
    PM_TRY(check_sum(where, out));
out:
    return err;
}

/* Reads a line "HOST [slots=N] [max_slots=N]". */
static int read_line(const char *where, const char *line, size_t length, struct pm_arena *a,
                     struct pm_launch_hosts *out)
{
    static const char blanks[] = " \t\r";
    const char *text = pm_arena_printf(a, "%.*s", (int)length, line), *name, *number = NULL;
    size_t size;

    name = text + strspn(text, blanks);
    size = strcspn(name, blanks);
    if (size == 0)
        return PM_OK;
    for (const char *word = name + size; *(word += strspn(word, blanks));
         word += strcspn(word, blanks)) {
        if (!strncmp(word, "slots=", 6))
            number = word + 6;
        else if (strncmp(word, "max_slots=", 10) != 0 && strncmp(word, "max-slots=", 10) != 0)
            return pm_fail(PM_ECONFIG, "%s: '%.*s' after the host's name: only slots=N, its number "
                           "of processes, is read", where, (int)strcspn(word, blanks), word);
    }
    return add_host(where, name, size, number, number ? strcspn(number, blanks) : 0, a, out);
}

int pm_launch_read_hostfile(const char *path, struct pm_arena *a, struct pm_launch_hosts *out)
{
    char *text = NULL;
    int number = 1, err = PM_OK;

    *out = (struct pm_launch_hosts){ 0 };
    PM_TRY(pm_text_read(path, 1 << 20, &text));
    for (const char *line = text; *line; number++) {
        PM_TRY(read_line(pm_arena_printf(a, "%s:%d", path, number), line, strcspn(line, "#\n"), a,
                         out));
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    PM_TRY(check_sum(path, out));
out:
    pm_free(text);
    return err;
}

/* ---- which hosts answer ------------------------------------------------------------------ */

/* Writes the words of the agent, and returns their number. Open MPI allows alternatives, separated
 * by colons; the first is used. */
static int agent_words(char *text, const char **words, int most)
{
    int count = 0;
    char *state = NULL;

    text[strcspn(text, ":")] = '\0';
    for (char *word = strtok_r(text, " \t", &state); word && count < most;
         word = strtok_r(NULL, " \t", &state))
        words[count++] = word;
    return count;
}

static pid_t ask(const char *host)
{
    const char *given = getenv("OMPI_MCA_plm_rsh_agent"), *words[64];
    char text[4096];
    const pid_t pid = fork();
    int count, null;

    if (pid != 0)
        return pid;
    snprintf(text, sizeof text, "%s", given && given[strspn(given, " \t:")] ? given :
             "ssh -o BatchMode=yes -o ConnectTimeout=10");
    count = agent_words(text, words, 60);
    words[count] = host;
    words[count + 1] = "true";
    words[count + 2] = NULL;
    null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    setpgid(0, 0); /* an agent may be a script that starts other programs */
    execvp(words[0], (char *const *)words);
    _exit(127);
}

/* Waits until the time is over, then kills the agent. */
static bool is_answer(pid_t pid, double until)
{
    int status = 0;
    pid_t ended;

    if (pid < 0)
        return false;
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 && pm_seconds() < until)
        usleep(20000);
    if (ended == 0) {
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        return false;
    }
    return ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void pm_launch_keep_answering(struct pm_launch_hosts *h, double seconds, struct pm_str *missing)
{
    const double until = pm_seconds() + seconds;
    pid_t *asked = pm_calloc(h->count + 1, sizeof *asked);
    size_t kept = 0;

    for (size_t i = 0; i < h->count; i++)
        asked[i] = pm_launch_is_here(h->list[i].name) ? 0 : ask(h->list[i].name);
    for (size_t i = 0; i < h->count; i++)
        if (asked[i] == 0 || is_answer(asked[i], until))
            h->list[kept++] = h->list[i];
        else
            pm_str_add(missing, "%s%s", missing->length ? ", " : "", h->list[i].name);
    h->count = kept;
    pm_free(asked);
}
