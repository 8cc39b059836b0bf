/* pumice launch: starts a command in several processes with mpirun, waits for its end, and starts
 * it again if a process or a host was lost. */
#include "app/app.h"
#include "jobs/launch.h"

#include <pumice/replicas.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The commands that several processes can run. */
static const char *const together[] = { "train", "replicas" };

enum { MOST_RESTARTS = 1000 };

/* ---- the command line -------------------------------------------------------------------- */

struct request {
    struct pm_launch launch;
    struct pm_launch_hosts named; /* by the user; launch.hosts are those that answer */
    int restarts;
    int argc;     /* the words of the command that is started */
    char **argv;
};

/* Reads one flag at argv[0], as "--flag VALUE" or "--flag=VALUE". Returns the number of its words;
 * 0: it is another flag. */
static int take_value(int argc, char **argv, const char *flag, const char **value)
{
    const size_t n = strlen(flag);

    if (strncmp(argv[0], flag, n) == 0 && argv[0][n] == '=') {
        *value = argv[0] + n + 1;
        return 1;
    }
    if (strcmp(argv[0], flag) != 0)
        return 0;
    if (argc < 2)
        return pm_fail(PM_ECONFIG, "command line: %s needs a value after it", flag);
    *value = argv[1];
    return 2;
}

static int read_number(const char *flag, const char *text, int low, int high, int *out)
{
    char *end;
    const long n = strtol(text, &end, 10);

    if (end == text || *end || n < low || n > high)
        return pm_fail(PM_ECONFIG, "command line: %s: '%s' is not a whole number of %d to %d", flag,
                       text, low, high);
    *out = (int)n;
    return PM_OK;
}

/* Only the words before the command are launch's own: --measure belongs to replicas. */
static int read_flags(struct request *q, int argc, char **argv, struct pm_arena *a)
{
    static const char *const flags[] = { "-n", "--hosts", "--hostfile", "--interface",
                                         "--restarts" };
    const char *value[PM_COUNT(flags)] = { 0 };
    int err = PM_OK;

    while (argc > 0 && argv[0][0] == '-') {
        int used = 0;

        for (size_t i = 0; i < PM_COUNT(flags) && used == 0; i++)
            PM_TRY(used = take_value(argc, argv, flags[i], &value[i]));
        if (used == 0)
            PM_TRY(pm_fail(PM_ECONFIG, "command line: launch has no flag '%s' (pumice launch "
                           "--help)", argv[0]));
        argc -= used, argv += used;
    }
    err = PM_OK;
    if (!value[0] + !value[1] + !value[2] != 2)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: launch needs either -n N, or --hosts A,B, or "
                       "--hostfile FILE: how many processes to start, and where"));
    if (value[0])
        PM_TRY(read_number("-n", value[0], 1, PM_MOST_PROCESSES, &q->launch.processes));
    if (value[1])
        PM_TRY(pm_launch_read_hosts(value[1], "command line: --hosts", a, &q->launch.hosts));
    if (value[2])
        PM_TRY(pm_launch_read_hostfile(value[2], a, &q->launch.hosts));
    if (value[3])
        PM_TRY(pm_launch_check_interface(value[3]));
    if (value[4])
        PM_TRY(read_number("--restarts", value[4], 0, MOST_RESTARTS, &q->restarts));
    q->launch.interface = value[3];
    q->argc = argc;
    q->argv = argv;
out:
    return err;
}

static int check_command(const struct request *q)
{
    if (q->argc == 0)
        return pm_fail(PM_ECONFIG, "command line: launch needs a command to start, as in pumice "
                       "launch -n 2 train x.json");
    for (size_t i = 0; i < PM_COUNT(together); i++)
        if (strcmp(q->argv[0], together[i]) == 0)
            return PM_OK;
    return pm_fail(PM_ECONFIG, "command line: launch starts train or replicas, not '%s'",
                   q->argv[0]);
}

/* Returns mpirun's words. The program is this one, with the global flags that main has removed. */
static int make_command(const struct request *q, const struct app_globals *g, struct pm_arena *a,
                        char ***out)
{
    const char **words = pm_arena_alloc(a, ((size_t)q->argc + 4) * sizeof *words);
    char self[4096];
    size_t count = 0;
    int err = PM_OK;

    PM_TRY(pm_own_path(self, sizeof self));
    words[count++] = self;
    for (int i = 0; i < q->argc; i++)
        words[count++] = q->argv[i];
    if (g->json)
        words[count++] = "--json";
    if (g->verbosity)
        words[count++] = g->verbosity > 0 ? "-v" : "-q";
    *out = pm_launch_command(&q->launch, words, count, a);
out:
    return err;
}

/* ---- starting ---------------------------------------------------------------------------- */

static int run_once(struct request *q, const struct app_globals *g, struct pm_arena *a,
                    struct pm_launch_end *end)
{
    const size_t hosts = q->launch.hosts.count, others = pm_launch_others(&q->launch.hosts);
    struct pm_str line = { 0 };
    char **words;
    int err = PM_OK;

    q->launch.here = hosts == 0 || others < hosts;
    if (!q->launch.here)
        PM_WARN("launch", "this machine is not among the hosts: after a signal or a failure, "
                "mpirun takes up to %d s to end", 2 * PM_LAUNCH_REMOTE_KILL_SECONDS);
    PM_TRY(make_command(q, g, a, &words));
    pm_launch_print(words, &line);
    PM_INFO("launch", "%s", line.text);
    PM_TRY(pm_launch_run(&q->launch, words, end));
out:
    pm_str_free(&line);
    return err;
}

/* Returns a copy of the hosts that the user has named. */
static struct pm_launch_hosts named_hosts(const struct request *q, struct pm_arena *a)
{
    struct pm_launch_hosts h = q->named;

    if (h.count)
        h.list = pm_arena_copy(a, h.list, h.count * sizeof *h.list);
    return h;
}

/* Chooses the hosts that answer. A host that did not answer at an earlier restart may answer now.
 * PM_EFAIL: none answers. */
static int find_hosts(struct request *q, struct pm_arena *a)
{
    struct pm_launch_hosts *hosts = &q->launch.hosts;
    struct pm_str missing = { 0 };
    int err = PM_OK;

    *hosts = named_hosts(q, a);
    if (hosts->count == 0)
        return PM_OK;
    pm_launch_keep_answering(hosts, PM_LAUNCH_ANSWER_SECONDS, &missing);
    if (hosts->count == 0)
        err = pm_fail(PM_EFAIL, "launch: none of the hosts %s answers: does 'ssh HOST true' work "
                      "without a password?", missing.text);
    else if (missing.length)
        PM_WARN("launch", "no answer from %s: the training goes on without", missing.text);
    pm_str_free(&missing);
    return err;
}

/* mpirun has failed. Its own message stands above. */
static int fail_start(const struct request *q, const struct pm_launch_end *end,
                      struct pm_arena *a)
{
    struct pm_launch_hosts hosts = named_hosts(q, a);
    struct pm_str missing = { 0 };
    int err;

    pm_launch_keep_answering(&hosts, PM_LAUNCH_ANSWER_SECONDS, &missing);
    if (missing.length)
        err = pm_fail(PM_EFAIL, "launch: mpirun ended with code %d, and there is no answer from "
                      "%s: does 'ssh HOST true' work without a password?", end->mpirun,
                      missing.text);
    else
        err = pm_fail(PM_EFAIL, "launch: mpirun ended with code %d: see its message above",
                      end->mpirun);
    pm_str_free(&missing);
    return err;
}

/* A process that has ended has printed its error, unless all were killed. */
static int result(const struct request *q, const struct pm_launch_end *end, int code,
                  struct pm_arena *a)
{
    if (code < 0)
        return fail_start(q, end, a);
    if (code > 0 && code < 128 && end->notes.code < 0 && end->notes.started > 0)
        return pm_fail(PM_ELOST, "launch: a process was killed, and no other was left to report "
                       "it (exit code %d of mpirun): was there enough memory?", end->mpirun);
    return code;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    struct request q = { 0 };
    struct pm_launch_end end;
    bool lost = true;
    int code = 0, err = PM_OK;

    PM_TRY(read_flags(&q, argc, argv, a));
    PM_TRY(check_command(&q));
    q.named = q.launch.hosts;
    q.launch.hosts = named_hosts(&q, a);
    if (pm_replicas_launched())
        PM_TRY(pm_fail(PM_ECONFIG, "command line: launch starts mpirun itself: start it without "
                                   "mpirun and srun"));
    PM_TRY(pm_launch_check_mpirun());
    for (int restart = 0; lost; restart++) {
        if (restart > 0) {
            PM_TRY(find_hosts(&q, a));
            PM_WARN("launch", "a process or a host was lost: restart %d of %d", restart,
                    q.restarts);
        }
        PM_TRY(run_once(&q, g, a, &end));
        code = pm_launch_judge(&end, &lost);
        lost &= restart < q.restarts;
    }
    err = result(&q, &end, code, a);
out:
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_launch = {
    .name = "launch", .help = "starts a training in several processes, on one or more machines",
    .usage = "-n N [--restarts N] COMMAND ...\n"
             "--hosts LIST [--interface NETWORK] [--restarts N] COMMAND ...\n"
             "--hostfile FILE [--interface NETWORK] [--restarts N] COMMAND ...",
    .details =
        "Prints and runs the mpirun of Open MPI, with the options that a training needs. COMMAND\n"
        "is train or replicas, with its arguments. The same pumice must be installed in the same\n"
        "folder on all machines, and ssh must work without a password: docs/replicas.md.\n"
        "\n"
        "The exit code is that of the training. Ctrl-C and SIGTERM end it after a checkpoint.\n"
        "\n"
        "  -n N          starts N processes on this machine\n"
        "  --hosts LIST  starts processes on these machines: big:2,small starts two on big and\n"
        "                one on small. The first one should be this machine\n"
        "  --hostfile FILE\n"
        "                reads the machines from a file of lines such as \"big slots=2\"\n"
        "  --interface NETWORK\n"
        "                uses only this network, 192.168.1.0/24 or eth0, if machines have several\n"
        "  --restarts N  starts the training again, at most N times, if a process was killed or a\n"
        "                machine is gone; on the machines that answer. It then continues from its\n"
        "                last checkpoint. 0 is the default. Errors and signals cause no restart\n"
        "\n"
        "    pumice launch -n 2 train configs/shapes_classification.json devices=cpu\n"
        "    pumice launch --hosts big,small --interface 192.168.1.0/24 replicas x.json --measure\n"
        "    pumice launch --hosts big,small --restarts 3 train x.json run.exchange=bfloat16\n",
    .run = run,
};
