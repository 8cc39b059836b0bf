/* launch_run: runs mpirun, hands signals to the training, and judges how it ended. */
#include "jobs/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long mpirun may run after all processes of this machine have ended: */
static const double after_all = 1;        /* and there are no others */
static const double after_chief = 6;      /* all others end within 5 s of the chief */
/* A process that has failed waits 5 s for the others. If they still run then, they wait for it. */
static const double after_failure = 8;
static const double look_seconds = 0.1;   /* between two looks at the notes */

struct watch {
    pid_t pid;
    const char *folder;
    int from[2];                /* pipes from the processes */
    int signals;                /* signalfd */
    bool remote;
    bool notified;                  /* the processes know that another one has failed */
    double failed_at, ended_at; /* pm_seconds when that was seen; 0: it was not */
    double look_at;             /* pm_seconds of the next look at the notes */
    struct pm_launch_end *end;
};

/* ---- the child --------------------------------------------------------------------------- */

/* The child gets a process group of its own. Otherwise Ctrl-C in a terminal would reach it, and
 * mpirun would kill the training. Programs in the background must not read from a terminal, so its
 * standard input is empty. If the launcher is killed, mpirun receives SIGTERM. */
static void be_child(char *const *words, const sigset_t *former, pid_t launcher, int failure)
{
    const int null = open("/dev/null", O_RDONLY);
    int code;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != launcher)
        _exit(1);
    dup2(null, 0);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, former, NULL);
    execvp(words[0], words);
    code = errno;
    if (write(failure, &code, sizeof code) < 0)
        _exit(126);
    _exit(127);
}

static int start(char *const *words, const sigset_t *former, pid_t *pid)
{
    const pid_t launcher = getpid();
    int failure[2], code = 0, err = PM_OK;

    if (pipe2(failure, O_CLOEXEC) < 0)
        return pm_fail(PM_EFAIL, "launch: no pipe: %s", strerror(errno));
    *pid = fork();
    if (*pid == 0)
        be_child(words, former, launcher, failure[1]);
    close(failure[1]);
    if (*pid < 0)
        err = pm_fail(PM_EFAIL, "launch: %s cannot be started: %s", words[0], strerror(errno));
    else if (read(failure[0], &code, sizeof code) == (ssize_t)sizeof code) {
        waitpid(*pid, NULL, 0);
        err = pm_fail(PM_EFAIL, "launch: %s cannot be started: %s", words[0], strerror(code));
    }
    close(failure[0]);
    return err;
}

/* ---- waiting ----------------------------------------------------------------------------- */

/* The first signal goes to one process of the training, later ones to mpirun. */
static void stop_training(struct watch *w, int number)
{
    struct pm_launch_notes notes;

    pm_launch_read_notes(w->folder, &notes);
    kill(w->end->signal || !notes.first ? w->pid : notes.first, SIGTERM);
    if (!w->end->signal)
        w->end->signal = number;
}

/* Writes what the processes have printed. A closed output stops the training, as it stops one
 * without a launcher. */
static void copy_output(struct watch *w)
{
    char text[65536];

    for (int i = 0; i < 2; i++)
        for (ssize_t n; (n = read(w->from[i], text, sizeof text)) > 0;)
            for (ssize_t at = 0, written; at < n; at += written) {
                written = write(STDOUT_FILENO + i, text + at, (size_t)(n - at));
                if (written < 0 && errno == EPIPE && !w->end->signal)
                    stop_training(w, SIGPIPE);
                if (written < 0 && (errno == EAGAIN || errno == EINTR)) {
                    poll(&(struct pollfd){ .fd = STDOUT_FILENO + i, .events = POLLOUT }, 1, 1000);
                    written = 0;
                    continue;
                }
                if (written <= 0)
                    break;
            }
}

static void take_signal(struct watch *w)
{
    struct signalfd_siginfo s;

    while (read(w->signals, &s, sizeof s) == (ssize_t)sizeof s)
        if (s.ssi_signo != SIGCHLD)
            stop_training(w, (int)s.ssi_signo);
}

/* Waits for output, a signal, or mpirun's end, for at most so many seconds. */
static bool has_ended(struct watch *w, double seconds)
{
    struct pollfd p[] = { { w->from[0], POLLIN, 0 }, { w->from[1], POLLIN, 0 },
                          { w->signals, POLLIN, 0 } };
    int status;
    pid_t ended;

    poll(p, PM_COUNT(p), (int)(1000 * seconds));
    copy_output(w);
    take_signal(w);
    ended = waitpid(w->pid, &status, WNOHANG);
    if (ended == w->pid)
        w->end->mpirun = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return ended != 0;
}

static void note_time(double *at, bool seen, double now)
{
    *at = seen ? *at > 0 ? *at : now : 0;
}

/* The chief may still save. mpirun allows it twice the time that it is given. */
static double after_other(void)
{
    const char *given = getenv("OMPI_MCA_odls_base_sigkill_timeout");

    return 15 + fmax(PM_LAUNCH_KILL_SECONDS, given ? 2 * atof(given) : 0);
}

/* Whether the training has ended, but mpirun has not. */
static bool is_late(struct watch *w)
{
    const double now = pm_seconds();
    struct pm_launch_notes n;

    if (now < w->look_at)
        return false;
    w->look_at = now + look_seconds;
    pm_launch_read_notes(w->folder, &n);
    note_time(&w->failed_at, n.failed, now);
    note_time(&w->ended_at, n.started > 0 && n.running == 0, now);
    if (!w->notified && n.running > 0 &&
        (n.killed > 0 || (n.failed && now - w->failed_at > after_failure))) {
        w->notified = true;
        pm_launch_signal_rest(w->folder, SIGHUP);
    }
    if (n.failed && now - w->failed_at > after_other())
        return true;
    return w->ended_at > 0 && now - w->ended_at > (!w->remote               ? after_all
                                                   : n.code >= 0 && n.chief ? after_chief
                                                                            : after_other());
}

/* Returns the folder for temporary files. */
static const char *temporary(void)
{
    const char *folder = getenv("TMPDIR");

    return folder && folder[0] ? folder : "/tmp";
}

/* Removes the temporary files of a killed mpirun, about 1 MB. */
static void remove_session(pid_t mpirun)
{
    struct pm_arena *a = pm_arena_create();
    char **paths = NULL;
    size_t count = 0;

    if (pm_glob(a, pm_arena_printf(a, "%s/ompi.*/pid.%ld", temporary(), (long)mpirun), &paths,
                &count) == PM_OK)
        for (size_t i = 0; i < count; i++)
            pm_remove_tree(paths[i]);
    pm_arena_destroy(&a);
}

/* SIGTERM lets mpirun remove its files. If there are other machines, it then only waits for them,
 * and prints that it does. */
static void end_mpirun(struct watch *w)
{
    PM_DEBUG("launch", "mpirun still runs after the training, and is ended");
    w->end->cut = true;
    if (!w->remote)
        kill(w->pid, SIGTERM);
    for (const double until = pm_seconds() + (w->remote ? 0 : 2); pm_seconds() < until;)
        if (has_ended(w, look_seconds))
            return;
    kill(-w->pid, SIGKILL);
    while (!has_ended(w, look_seconds))
        ;
    remove_session(w->pid);
}

/* The processes that end write their notes last, so the output is complete then. */
static void wait_for_end(struct watch *w)
{
    while (!has_ended(w, look_seconds))
        if (is_late(w)) {
            end_mpirun(w);
            break;
        }
    copy_output(w);
}

static int open_watch(struct watch *w, char *folder, const sigset_t *signals)
{
    const char *why;

    if (!mkdtemp(folder))
        return pm_fail(PM_EFAIL, "%s: cannot be made: %s", folder, strerror(errno));
    w->folder = folder;
    why = pm_launch_make_pipes(folder, w->from);
    if (why)
        return pm_fail(PM_EFAIL, "%s: no pipe can be made: %s", folder, why);
    w->signals = signalfd(-1, signals, SFD_NONBLOCK | SFD_CLOEXEC);
    if (w->signals < 0)
        return pm_fail(PM_EFAIL, "launch: signals cannot be read: %s", strerror(errno));
    setenv(PM_LAUNCH_VARIABLE, folder, 1);
    return PM_OK;
}

static void close_watch(struct watch *w)
{
    const int files[] = { w->from[0], w->from[1], w->signals };

    unsetenv(PM_LAUNCH_VARIABLE);
    for (size_t i = 0; i < PM_COUNT(files); i++)
        if (files[i] >= 0)
            close(files[i]);
    if (w->folder && pm_remove_tree(w->folder) < 0)
        PM_WARN("launch", "%s", pm_error_text());
}

static bool is_ignored(int signal_number)
{
    struct sigaction a;

    return sigaction(signal_number, NULL, &a) == 0 && a.sa_handler == SIG_IGN;
}

int pm_launch_run(const struct pm_launch *l, char *const *words, struct pm_launch_end *out)
{
    char folder[4096];
    struct watch w = { .from = { -1, -1 }, .signals = -1, .end = out,
                       .remote = pm_launch_others(&l->hosts) > 0 };
    void (*on_pipe)(int) = signal(SIGPIPE, SIG_IGN);
    sigset_t signals, former;
    int err = PM_OK;

    *out = (struct pm_launch_end){ .here = l->here, .notes.code = -1 };
    snprintf(folder, sizeof folder, "%s/pumice-launch-XXXXXX", temporary());
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    if (!is_ignored(SIGHUP)) /* as nohup asks */
        sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, &former);
    PM_TRY(open_watch(&w, folder, &signals));
    PM_TRY(start(words, &former, &w.pid));
    wait_for_end(&w);
    pm_launch_read_notes(folder, &out->notes);
    pm_launch_signal_rest(folder, SIGKILL);
out:
    sigprocmask(SIG_SETMASK, &former, NULL);
    signal(SIGPIPE, on_pipe);
    close_watch(&w);
    return err;
}

/* ---- the result -------------------------------------------------------------------------- */

/* Whether mpirun's exit code is that of a process that was killed or has crashed. Codes of signals
 * after which a training saves and ends are none. */
static bool is_crash(int code)
{
    return code > 128 && code <= 128 + SIGRTMAX && code != 128 + SIGHUP && code != 128 + SIGINT &&
           code != 128 + SIGPIPE && code != 128 + SIGTERM;
}

/* mpirun's code if a machine cannot be reached. For its other errors it is 1. */
static const int mpirun_failed = 255;

int pm_launch_judge(const struct pm_launch_end *e, bool *lost)
{
    const int code = e->notes.code;

    *lost = false;
    if (code == 0)
        return 0;
    if (e->signal)
        return code > 0 && code < 128 ? code : 128 + e->signal;
    if (code == 2 || code == 3)
        return code;
    /* If a process is killed, the others receive a signal, so they may end with 129 or 143. */
    if (e->notes.lost || e->notes.killed > 0 || (!e->cut && is_crash(e->mpirun))) {
        *lost = true;
        return code > 0 && code < 128 ? code : 4;
    }
    if (code > 0)
        return code;
    if (e->notes.started > 0 || e->mpirun == 0)
        return e->mpirun;
    return e->here || e->mpirun == 1 || e->mpirun == mpirun_failed ? -1 : e->mpirun;
}
