/* launch: starts a training in several processes with Open MPI's mpirun, and ends it. pumice launch
 * is made of it. Texts and lists are in the caller's arena. Not thread-safe. */
#ifndef PM_LAUNCH_H
#define PM_LAUNCH_H

#include <pumice/config.h>

#include <sys/types.h>

/* ---- hosts: launch_hosts.c --------------------------------------------------------------- */

struct pm_launch_host {
    const char *name;
    int processes; /* at least 1 */
};
struct pm_launch_hosts {
    struct pm_launch_host *list; /* each name once, in the order of their first mention */
    size_t count;                /* 0: none are named, the processes run on this machine */
};
/* Reads "big:2,small": names of hosts, each with a number of processes, 1 if not stated. where: the
 * place for messages. PM_ECONFIG. */
int pm_launch_read_hosts(const char *text, const char *where, struct pm_arena *a,
                         struct pm_launch_hosts *out);
/* Reads a host file of Open MPI: a host in each line, with slots=N, its number of processes, 1 if
 * not stated. '#' begins a comment. max_slots is ignored. PM_ECONFIG; PM_EDATA: it cannot be
 * read. */
int pm_launch_read_hostfile(const char *path, struct pm_arena *a, struct pm_launch_hosts *out);
/* Returns the sum of processes. */
int pm_launch_processes(const struct pm_launch_hosts *h);
/* Returns the number of hosts that are other machines. */
size_t pm_launch_others(const struct pm_launch_hosts *h);
enum { PM_LAUNCH_ANSWER_SECONDS = 15 };
/* Runs "AGENT HOST true" for each host that is not this machine, all at once, for at most so many
 * seconds, and removes the hosts where it fails from the list. AGENT: OMPI_MCA_plm_rsh_agent, else
 * ssh without questions. missing receives the removed names, separated by commas. */
void pm_launch_keep_answering(struct pm_launch_hosts *h, double seconds,
                              struct pm_str *missing);

/* ---- networks: launch_network.c ---------------------------------------------------------- */

/* Checks a value of --interface: names of interfaces, or networks such as 192.168.1.0/24, separated
 * by commas. PM_ECONFIG: it is neither, or this machine has no such interface. The message lists
 * those that it has. */
int pm_launch_check_interface(const char *text);
/* Whether the host is this machine, by its name or by an address of it. */
bool pm_launch_is_here(const char *host);

/* ---- the command: launch_command.c ------------------------------------------------------- */

struct pm_launch {
    struct pm_launch_hosts hosts;
    int processes;         /* if no hosts are named */
    bool here;             /* this machine is one of the hosts, or none are named */
    const char *interface; /* NULL: Open MPI chooses */
};
/* odls_base_sigkill_timeout. When a process has failed or was killed, mpirun 4.1 waits so many
 * seconds, sends SIGTERM to the others, waits once more, and sends SIGKILL. All this time it
 * neither forwards output nor ends, even if no process is left. The launcher makes this short, but
 * only if there are processes on its machine. */
enum { PM_LAUNCH_KILL_SECONDS = 60, PM_LAUNCH_REMOTE_KILL_SECONDS = 10 };
/* Returns mpirun's words, with a NULL after the last. program: the words of the program that it
 * starts, `count` of them; borrowed. */
char **pm_launch_command(const struct pm_launch *l, const char *const *program, size_t count,
                         struct pm_arena *a);
/* Appends the words as a line that can be typed into a shell. */
void pm_launch_print(char *const *words, struct pm_str *out);
/* Checks that `mpirun` is in PATH and belongs to Open MPI. PM_ECONFIG. */
int pm_launch_check_mpirun(void);

/* ---- notes: launch_notes.c --------------------------------------------------------------- */

/* mpirun's own exit code is not the training's: it is 1 after a signal. So each process on the
 * launcher's machine writes its exit code to a file in the folder that the variable PM_LAUNCH
 * names. Processes on other machines do not have the variable. */
#define PM_LAUNCH_VARIABLE "PM_LAUNCH"
/* Notes that this process runs, or that it ends with this exit code; lost: because another process
 * or its host was lost. start also replaces standard output and standard error by pipes to the
 * launcher, because mpirun does not always forward them. Do nothing without the variable. Failures
 * are ignored: then the launcher uses mpirun's exit code, and mpirun forwards the output. */
void pm_launch_note_start(void);
void pm_launch_note_end(int code, bool lost);

struct pm_launch_notes {
    int started, running; /* numbers of processes */
    int killed;      /* number of those that ended without a note */
    int code;        /* of the lowest rank that has noted its end; -1: none has */
    bool chief;      /* that is rank 0 */
    bool lost;       /* some process has noted a loss */
    bool failed;     /* some process has ended with another code than 0 */
    pid_t first;     /* the lowest rank that runs; 0: none */
};
/* For the launcher. Creates the pipes in the folder. Returns an error's text, or NULL; from[0] and
 * from[1] are the ends of both from which the launcher reads without waiting. */
const char *pm_launch_make_pipes(const char *folder, int from[2]);
void pm_launch_read_notes(const char *folder, struct pm_launch_notes *out);
/* Sends a signal to the processes that have not noted their end. */
void pm_launch_signal_rest(const char *folder, int number);

/* ---- running: launch_run.c --------------------------------------------------------------- */

struct pm_launch_end {
    int mpirun;    /* its exit code; 128 + n: signal n ended it */
    int signal;    /* that the launcher received: SIGINT, SIGTERM or SIGHUP; SIGPIPE: its output was
                    * closed; 0: none */
    bool here;     /* as in struct pm_launch */
    bool cut;      /* the launcher has ended mpirun, whose exit code then means nothing */
    struct pm_launch_notes notes;
};
/* Runs the command until it ends. A signal that the launcher receives goes to one process of the
 * training as SIGTERM, so that all stop after the same step, and a second signal to mpirun. If a
 * process was killed, the launcher sends SIGHUP to the others on this machine. mpirun is ended when
 * the training has ended: it may wait for a minute without a reason, or for ever if a host is gone.
 * words: of pm_launch_command(l, ...). PM_EFAIL: mpirun cannot be started. */
int pm_launch_run(const struct pm_launch *l, char *const *words, struct pm_launch_end *out);
/* Returns the training's exit code. -1: mpirun has failed before the training began. *lost: a
 * process or a host was lost, so the training can be started again. */
int pm_launch_judge(const struct pm_launch_end *e, bool *lost);

#endif
