/* replicas: joins and leaves the processes of a training. replicas.h has the contract. */
#include "replicas/replicas_private.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longest waits for the others: after a failure, and if a signal says that there is no time. */
static const double leave_seconds = 5, stopped_leave_seconds = 0.1;

/* ---- the plug-in ------------------------------------------------------------------------- */

/* The number of processes that a launcher says it has started; 0: none says so. */
static int launched_count(const char **variable)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                         "SLURM_STEP_NUM_TASKS" };

    for (size_t i = 0; i < PM_COUNT(names); i++) {
        const char *text = getenv(names[i]);

        *variable = names[i];
        if (text && atoi(text) > 0)
            return atoi(text);
    }
    return 0;
}

bool pm_replicas_launched(void)
{
    const char *variable;

    return launched_count(&variable) > 1;
}

/* Returns the first variable that is a number; 0: none is. */
static int launched_number(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *text = getenv(names[i]);

        if (text && text[0] >= '0' && text[0] <= '9')
            return atoi(text);
    }
    return 0;
}

int pm_replicas_launched_rank(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID" };

    return launched_number(names, PM_COUNT(names));
}

int pm_replicas_launched_place(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                         "SLURM_LOCALID" };

    return launched_number(names, PM_COUNT(names));
}

/* Opens libpumice_mpi.so. `tried` receives the paths. */
static void *open_plugin(struct pm_str *tried)
{
    const char *given = getenv("PM_MPI_PLUGIN");
    char self[4096] = "", path[4200];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = length > 0 ? strrchr(self, '/') : NULL;
    static const char *const folders[] = { ".", PUMICE_PLUGINS };

    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < (given ? 1 : PM_COUNT(folders)); i++) {
        void *library;

        if (given)
            snprintf(path, sizeof path, "%s", given);
        else
            snprintf(path, sizeof path, "%s/%s/libpumice_mpi.so", self, folders[i]);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
        pm_str_add(tried, "%s%s", tried->text ? "; " : "", dlerror());
    }
    return NULL;
}

static int load(struct pm_replicas *r)
{
    struct pm_str tried = { 0 };
    char host[64];
    int err = PM_OK;

    r->library = open_plugin(&tried);
    pm_replicas_host_name(host, sizeof host);
    if (!r->library)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "replicas: %d processes were started, but on %s the plug-in for MPI cannot "
                       "be opened: %s. Install Open MPI, and a Pumice that was built with it "
                       "(package libopenmpi-dev)",
                       launched_count(&(const char *){ NULL }), host, tried.text));
    r->row = dlsym(r->library, PM_TRANSPORT_SYMBOL);
    if (!r->row || r->row->version != PM_TRANSPORT_VERSION)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "replicas: the plug-in libpumice_mpi.so belongs to another version of "
                       "Pumice: install both from the same build"));
out:
    pm_str_free(&tried);
    return err;
}

/* ---- joining ----------------------------------------------------------------------------- */

void pm_replicas_host_name(char *out, size_t size)
{
    if (gethostname(out, size) < 0 || !out[0])
        snprintf(out, size, "unknown");
    out[size - 1] = '\0';
}

/* Exchanges the names of the hosts. */
static int exchange_hosts(struct pm_replicas *r)
{
    char own[64] = "", *all = pm_calloc((size_t)r->count, sizeof own);
    int err = PM_OK;

    pm_replicas_host_name(own, sizeof own);
    PM_TRY(pm_replicas_allgather(r, own, sizeof own, all));
    pthread_mutex_lock(&r->lock);
    for (int i = 0; i < r->count; i++)
        memcpy(r->ranks[i].host, all + (size_t)i * sizeof own, sizeof r->ranks[i].host);
    pthread_mutex_unlock(&r->lock);
out:
    pm_free(all);
    return err;
}

static int start(struct pm_replicas *r)
{
    const char *variable = "";
    const int expected = r->library ? launched_count(&variable) : 0;
    int err = PM_OK;

    r->failed_rank = -1;
    r->stop_seconds = INFINITY;
    r->phase_at = pm_seconds();
    PM_TRY(pm_exchange_thread_start(r));
    if (r->library && r->count != expected)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "replicas: %s is %d, but %s sees %d %s: mpirun or srun belongs to another "
                       "MPI than the plug-in. Start with the mpirun of the MPI that Pumice was "
                       "built with, or with srun --mpi=pmix",
                       variable, expected, r->row->name, r->count,
                       pm_plural(r->count, "process", "processes")));
    PM_TRY(exchange_hosts(r));
out:
    return err;
}

static void end(struct pm_replicas *r)
{
    if (r->opened)
        pm_exchange_thread_end(r);
    for (size_t i = 0; i < r->kept_count; i++)
        r->kept[i].release(r->kept[i].object);
    pm_free(r->kept);
    pm_free(r->ranks);
    pm_free(r); /* the library stays loaded: MPI does not survive dlclose */
}

int pm_replicas_open(const struct pm_transport_row *row, void *ctx, struct pm_replicas **out)
{
    struct pm_replicas *r = pm_calloc(1, sizeof *r);
    int err = PM_OK;

    r->row = row;
    r->ctx = ctx;
    PM_TRY(start(r));
    *out = r, r = NULL;
out:
    if (r)
        end(r);
    return err;
}

int pm_replicas_join(struct pm_replicas **out)
{
    struct pm_replicas *r;
    int err = PM_OK;

    *out = NULL;
    if (!pm_replicas_launched())
        return PM_OK;
    r = pm_calloc(1, sizeof *r);
    PM_TRY(load(r));
    PM_TRY(start(r));
    *out = r, r = NULL;
out:
    if (r)
        end(r);
    return err;
}

/* ---- leaving ----------------------------------------------------------------------------- */

/* The rank that failed without a message, or -1. The lock is held. */
static int silent_rank(const struct pm_replicas *r)
{
    return r->failure && r->failed_rank >= 0 && !r->ranks[r->failed_rank].state.failure
               ? r->failed_rank
               : -1;
}

/* Whether every other rank leaves, and knows that this one leaves. A silent rank does not count.
 * The lock is held. */
static bool all_leave(const struct pm_replicas *r)
{
    for (int i = 0; i < r->count; i++)
        if (i != r->rank && i != silent_rank(r) &&
            !(r->ranks[i].state.leaving && r->ranks[i].knows))
            return false;
    return true;
}

/* Sends the last state, and waits until the others have sent theirs. Returns err, or the failure of
 * another rank. */
static int say_goodbye(struct pm_replicas *r, int err)
{
    const bool hurry = r->stop && *r->stop;
    const double until = pm_seconds() + (hurry ? stopped_leave_seconds : leave_seconds);
    char text[480];

    snprintf(text, sizeof text, "%s", pm_error_text());
    pthread_mutex_lock(&r->lock);
    r->own.leaving = 1;
    if (err < 0 && r->failed_rank < 0) {
        r->own.failure = err;
        snprintf(r->own.text, sizeof r->own.text, "%s", text);
        pm_replicas_record(r, err, -1, text);
    }
    r->state_due = true;
    pthread_cond_broadcast(&r->wake);
    while (!all_leave(r) && (err == PM_OK ? !r->failure : pm_seconds() < until))
        pm_replicas_wait(r, &r->moved, 2e-3);
    r->orderly = all_leave(r) && silent_rank(r) < 0;
    if (err == PM_OK && r->failure && !r->stopped) /* stopped: the caller has saved in time */
        err = pm_fail(r->failure, "%s", r->failure_text);
    pthread_mutex_unlock(&r->lock);
    return err;
}

int pm_replicas_leave(struct pm_replicas **replicas, int err)
{
    struct pm_replicas *r = *replicas;

    if (!r)
        return err;
    err = say_goodbye(r, err);
    end(r);
    *replicas = NULL;
    return err;
}

/* ---- queries ----------------------------------------------------------------------------- */

int pm_replicas_rank(const struct pm_replicas *r)
{
    return r ? r->rank : 0;
}

int pm_replicas_count(const struct pm_replicas *r)
{
    return r ? r->count : 1;
}

const char *pm_replicas_host(const struct pm_replicas *r, int rank)
{
    return r->ranks[rank].host;
}

uint64_t pm_replicas_sent(const struct pm_replicas *r)
{
    return atomic_load(&r->sent);
}

bool pm_replicas_failed(struct pm_replicas *r, int *rank)
{
    bool failed = false;

    if (r) {
        pthread_mutex_lock(&r->lock);
        failed = r->failure && strcmp(pm_error_text(), r->failure_text) == 0;
        *rank = r->failed_rank;
        pthread_mutex_unlock(&r->lock);
    }
    return failed;
}

bool pm_replicas_silent(struct pm_replicas *r)
{
    bool silent = false;

    if (r) {
        pthread_mutex_lock(&r->lock);
        silent = silent_rank(r) >= 0;
        pthread_mutex_unlock(&r->lock);
    }
    return silent;
}

bool pm_replicas_stopped(struct pm_replicas *r)
{
    bool stopped = false;

    if (r) {
        pthread_mutex_lock(&r->lock);
        stopped = r->stopped;
        pthread_mutex_unlock(&r->lock);
    }
    return stopped;
}
