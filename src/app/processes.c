/* processes: see processes.h. */
#include "app/processes.h"

#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <string.h>
#include <unistd.h>

/* Time in which another process prints the error. */
enum { PRINTING_SECONDS = 2 };

static const char task_key[] = "run.task"; /* the number that a process must have */

/* Returns the config as text for the other processes. The chief's command line sets the number of
 * the chief only. */
static char *text_for_others(const struct pm_config *c)
{
    cJSON *dump = pm_config_dump(c);

    if (strcmp(pm_config_origin(c, task_key), "command line") == 0)
        cJSON_ReplaceItemInObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(dump, "run"),
                                               "task", cJSON_CreateNull());
    char *text = pm_json_print(dump);
    cJSON_Delete(dump);
    return text;
}

/* Parses the chief's config. Of its own arguments, this process uses only run.task. */
static int parse_received(const char *text, const struct app_args *args, struct pm_arena *a,
                          struct pm_config **out)
{
    const struct pm_open_sections open = pm_train_choices(a);
    const size_t key = strlen(task_key);
    const char **own = pm_arena_alloc(a, (args->overrides_count + 1) * sizeof *own);
    size_t count = 0;

    for (size_t i = 0; i < args->overrides_count; i++)
        if (strncmp(args->overrides[i], task_key, key) == 0 && args->overrides[i][key] == '=')
            own[count++] = args->overrides[i];
    return pm_config_parse("the config of rank 0", text, own, count, &open, out);
}

int app_share_config(const struct app_args *args, const char *command, struct pm_replicas *r,
                     struct pm_arena *a, struct pm_config **out)
{
    char *text = NULL;
    size_t size = 0;
    int err = PM_OK;

    if (pm_replicas_rank(r) == 0) {
        PM_TRY(app_load_config(args, command, 1, a, out));
        text = text_for_others(*out);
        size = strlen(text);
    }
    PM_TRY(pm_replicas_broadcast_bytes(r, 0, &text, &size));
    if (pm_replicas_rank(r) > 0)
        PM_TRY(parse_received(text, args, a, out));
    pm_config_for_replica(*out, pm_replicas_rank(r), pm_replicas_host(r, pm_replicas_rank(r)));
out:
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
