/* processes: see processes.h. */
#include "app/processes.h"

#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <string.h>
#include <unistd.h>

/* Time in which another process prints the error. */
enum { PRINTING_SECONDS = 2 };

int app_share_config(const struct app_args *args, const char *command, struct pm_replicas *r,
                     struct pm_arena *a, struct pm_config **out)
{
    struct pm_open_sections open;
    cJSON *dump = NULL;
    char *text = NULL;
    size_t size = 0;
    int err = PM_OK;

    if (pm_replicas_rank(r) == 0) {
        PM_TRY(app_load_config(args, command, 1, a, out));
        dump = pm_config_dump(*out);
        text = pm_json_print(dump);
        size = strlen(text);
    }
    PM_TRY(pm_replicas_broadcast_bytes(r, 0, &text, &size));
    if (pm_replicas_rank(r) > 0) {
        open = pm_train_choices(a);
        PM_TRY(pm_config_parse("the config of rank 0", text, NULL, 0, &open, out));
    }
    pm_config_for_replica(*out, pm_replicas_rank(r), pm_replicas_host(r, pm_replicas_rank(r)));
out:
    cJSON_Delete(dump);
    pm_free(text);
    return err;
}

void app_mark_log(const struct pm_replicas *r, const struct app_globals *g)
{
    const int rank = pm_replicas_rank(r);
    char text[96];

    if (rank == 0)
        return;
    snprintf(text, sizeof text, "[%d %s] ", rank, pm_replicas_host(r, rank));
    pm_log_prefix(text);
    if (g->verbosity <= 0)
        pm_log_set_level(PM_LEVEL_WARN);
}

/* Before the processes have joined, all of a host usually have the same error: the arguments are
 * wrong, or the plug-in is missing. The first process of each host prints it. The others wait
 * before they end, because mpirun kills all processes when one has ended with an error. */
static int leave_alone(struct app_globals *g, int err)
{
    if (err >= 0)
        return err;
    if (pm_replicas_launched() && pm_replicas_launched_place() > 0) {
        sleep(PRINTING_SECONDS);
        return pm_exit_code(err);
    }
    app_print_failure(g, err);
    return err;
}

/* If one process fails, all end with its error. Only the chief prints the error, unless it is lost;
 * the others have written it to their log files. The chief prints before it leaves, because mpirun
 * kills all processes when one has ended with an error. */
int app_leave(struct pm_replicas **r, struct app_globals *g, int err)
{
    int rank = -1;

    if (!*r)
        return leave_alone(g, err);
    g->lost = pm_replicas_failed(*r, &rank) && pm_replicas_silent(*r);
    const bool prints = pm_replicas_rank(*r) == 0 || (g->lost && rank == 0);

    if (err < 0 && prints)
        app_print_failure(g, err);
    err = pm_replicas_leave(r, err);
    return err < 0 && !prints ? pm_exit_code(err) : err;
}
