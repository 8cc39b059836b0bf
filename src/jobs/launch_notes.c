/* launch_notes: what the processes of a training report to their launcher, in files FOLDER/RANK:
 * "running PID" or "ended CODE LOST". A file is renamed to its name, so a reader never sees a part
 * of it. FOLDER/out and FOLDER/err are named pipes. */
#include "jobs/launch.h"

#include <pumice/replicas.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const pipes[] = { "out", "err" };

/* ---- in the processes -------------------------------------------------------------------- */

static void write_note(const char *text)
{
    const char *folder = getenv(PM_LAUNCH_VARIABLE);
    char path[4096], fresh[4112];
    int fd;

    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/%d", folder, pm_replicas_launched_rank());
    snprintf(fresh, sizeof fresh, "%s.new", path);
    fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    const bool whole = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (close(fd) == 0 && whole)
        rename(fresh, path);
}

/* Opening fails if nobody reads from the pipe. */
static void use_pipe(const char *folder, const char *name, int number)
{
    char path[4112];
    int fd;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fcntl(fd, F_SETFL, 0) == 0)
        dup2(fd, number);
    close(fd);
}

void pm_launch_note_start(void)
{
    const char *folder = getenv(PM_LAUNCH_VARIABLE);
    char text[64];

    if (!folder)
        return;
    for (int i = 0; i < 2; i++)
        use_pipe(folder, pipes[i], STDOUT_FILENO + i);
    snprintf(text, sizeof text, "running %ld\n", (long)getpid());
    write_note(text);
}

void pm_launch_note_end(int code, bool lost)
{
    char text[64];

    snprintf(text, sizeof text, "ended %d %d\n", code, lost);
    write_note(text);
}

/* ---- in the launcher --------------------------------------------------------------------- */

const char *pm_launch_make_pipes(const char *folder, int from[2])
{
    char path[4112];

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, pipes[i]);
        /* Open for writing, too: else reading ends when no process has the pipe open. */
        if (mkfifo(path, 0600) < 0 || (from[i] = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)) < 0)
            return strerror(errno);
    }
    return NULL;
}

struct note {
    long pid;  /* of a process that has not noted its end; 0: it has */
    int code, lost;
};

static bool read_note(const char *folder, int rank, struct note *out)
{
    char path[4096], text[64] = "";
    bool known = false;

    snprintf(path, sizeof path, "%s/%d", folder, rank);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    *out = (struct note){ 0 };
    if (fgets(text, sizeof text, f))
        known = sscanf(text, "running %ld", &out->pid) == 1 ||
                sscanf(text, "ended %d %d", &out->code, &out->lost) == 2;
    fclose(f);
    return known;
}

/* Whether the process still runs this program. A process that has ended, but that its parent has
 * not yet waited for, runs none. */
static bool is_running(long pid)
{
    char path[64], own[4096], other[4096];
    ssize_t a, b;

    snprintf(path, sizeof path, "/proc/%ld/exe", pid);
    a = readlink("/proc/self/exe", own, sizeof own);
    b = readlink(path, other, sizeof other);
    return pid > 1 && a > 0 && a == b && memcmp(own, other, (size_t)a) == 0;
}

void pm_launch_read_notes(const char *folder, struct pm_launch_notes *out)
{
    struct note n;

    *out = (struct pm_launch_notes){ .code = -1 };
    for (int rank = 0; rank < PM_MOST_PROCESSES; rank++) {
        if (!read_note(folder, rank, &n))
            continue;
        out->started++;
        if (n.pid) {
            const bool runs = is_running(n.pid);

            /* It may have noted its end meanwhile. */
            if (runs || (read_note(folder, rank, &n) && n.pid)) {
                out->running += runs;
                out->killed += !runs;
                out->first = out->first || !runs ? out->first : (pid_t)n.pid;
                continue;
            }
        }
        if (out->code < 0) {
            out->code = n.code;
            out->chief = rank == 0;
        }
        out->lost |= n.lost != 0;
        out->failed |= n.code != 0;
    }
}

void pm_launch_signal_rest(const char *folder, int number)
{
    struct note n;

    for (int rank = 0; rank < PM_MOST_PROCESSES; rank++)
        if (read_note(folder, rank, &n) && n.pid && is_running(n.pid))
            kill((pid_t)n.pid, number);
}
