/* launch_command: the words of mpirun. What it adds, and why:
 *
 * - --bind-to none: mpirun otherwise binds a process to one core, or to a part of the cores.
 * - --map-by node: deals ranks to the hosts in turn, so that every host has work.
 * - OVERSUBSCRIBE, if no hosts are named: there may be more processes than cores; they share them.
 * - odls_base_sigkill_timeout: when a process was killed, mpirun otherwise kills the others after
 *   2 s, which is too short to save a large net. OMPI_MCA_odls_base_sigkill_timeout in the
 *   environment sets another time.
 * - btl_tcp_if_include, oob_tcp_if_include: the networks of Open MPI's two parts that use TCP:
 *   messages of the program, and those between mpirun's daemons. */
#include "jobs/launch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct words {
    char **list;
    size_t count, capacity;
    struct pm_arena *arena;
};

static void add(struct words *w, const char *word)
{
    PM_GROW(w->list, w->count, w->capacity);
    w->list[w->count++] = word ? pm_arena_strdup(w->arena, word) : NULL;
}

static void add_setting(struct words *w, const char *name, const char *value)
{
    add(w, "--mca");
    add(w, name);
    add(w, value);
}

static void add_hosts(struct words *w, const struct pm_launch_hosts *h)
{
    struct pm_str list = { 0 };

    for (size_t i = 0; i < h->count; i++)
        pm_str_add(&list, "%s%s:%d", i ? "," : "", h->list[i].name, h->list[i].processes);
    add(w, "--host");
    add(w, list.text);
    pm_str_free(&list);
}

char **pm_launch_command(const struct pm_launch *l, const char *const *program, size_t count,
                         struct pm_arena *a)
{
    const int processes = l->hosts.count ? pm_launch_processes(&l->hosts) : l->processes;
    struct words w = { .arena = a };
    char **out;

    add(&w, "mpirun");
    add(&w, "--bind-to");
    add(&w, "none");
    add(&w, "--map-by");
    add(&w, l->hosts.count ? "node" : "node:OVERSUBSCRIBE");
    add(&w, "-n");
    add(&w, pm_arena_printf(a, "%d", processes));
    if (l->hosts.count)
        add_hosts(&w, &l->hosts);
    if (!getenv("OMPI_MCA_odls_base_sigkill_timeout")) /* which an option would overrule */
        add_setting(&w, "odls_base_sigkill_timeout",
                    pm_arena_printf(a, "%d", l->here ? PM_LAUNCH_KILL_SECONDS
                                                     : PM_LAUNCH_REMOTE_KILL_SECONDS));
    if (l->interface) {
        add_setting(&w, "btl_tcp_if_include", l->interface);
        add_setting(&w, "oob_tcp_if_include", l->interface);
    }
    for (size_t i = 0; i < count; i++)
        add(&w, program[i]);
    add(&w, NULL);
    out = pm_arena_copy(a, w.list, w.count * sizeof *out);
    pm_free(w.list);
    return out;
}

/* Writes a word in single quotes if a shell would change it. */
static void print_word(const char *word, struct pm_str *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_.,:/=+-@%";

    if (*word && word[strspn(word, plain)] == '\0') {
        pm_str_add(out, "%s", word);
        return;
    }
    pm_str_add(out, "'");
    for (; *word; word++)
        pm_str_add(out, *word == '\'' ? "'\\''" : "%c", *word);
    pm_str_add(out, "'");
}

void pm_launch_print(char *const *words, struct pm_str *out)
{
    for (size_t i = 0; words[i]; i++) {
        pm_str_add(out, "%s", i ? " " : "");
        print_word(words[i], out);
    }
}

int pm_launch_check_mpirun(void)
{
    FILE *f = popen("exec mpirun --version 2>&1 </dev/null", "r");
    char line[256] = "";
    int status;

    if (!f)
        return pm_fail(PM_EFAIL, "launch: mpirun cannot be started");
    if (!fgets(line, sizeof line, f))
        line[0] = '\0';
    for (char rest[256]; fgets(rest, sizeof rest, f);)
        ;
    status = pclose(f);
    line[strcspn(line, "\n")] = '\0';
    if (strstr(line, "Open MPI") || strstr(line, "OpenRTE"))
        return PM_OK;
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 126))
        return pm_fail(PM_ECONFIG, "launch: mpirun is not in PATH: install Open MPI (package "
                       "openmpi-bin)");
    return pm_fail(PM_ECONFIG, "launch: the mpirun in PATH is not Open MPI's ('%s'): install Open "
                   "MPI (package openmpi-bin), or start the other one yourself", line);
}
