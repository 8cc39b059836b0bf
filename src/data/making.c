/* making: makes a data folder beside its final place and moves it there when it is complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/making_private.h"

/* Returns the last part of a path: "my data" for "runs/my data/". */
static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Whether dst is free. It may be an empty folder, because rename replaces it. */
static int check_free(const struct pm_making *m)
{
    if (m->replace && pm_file_exists(pm_arena_printf(m->arena, "%s/dataset.json", m->dst)))
        return PM_OK;
    if (pm_file_exists(m->dst) || (pm_is_folder(m->dst) && rmdir(m->dst) != 0))
        return pm_fail(PM_EFAIL, "%s: the folder exists already: remove it, or name another one",
                       m->dst);
    return PM_OK;
}

int pm_making_create(const char *dst, const char *name, bool replace, struct pm_making **out)
{
    int err = PM_OK;
    struct pm_making *m = pm_calloc(1, sizeof *m);
    char *temporary = NULL;

    m->arena = pm_arena_create();
    m->lock = -1;
    m->replace = replace;
    if (!dst[0])
        PM_TRY(pm_fail(PM_ECONFIG, "the data folder's name is empty"));
    char *path = pm_arena_strdup(m->arena, dst);
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    m->dst = path;
    m->name = name ? pm_arena_strdup(m->arena, name) : last_part(path);
    PM_TRY(pm_making_check_name(PM_ECONFIG, "the data folder", m->name));
    PM_TRY(check_free(m));
    const char *slash = strrchr(path, '/');
    if (slash && slash > path)
        PM_TRY(pm_make_folders(pm_arena_printf(m->arena, "%.*s", (int)(slash - path), path)));
    PM_TRY(pm_temporary_folder(path, &temporary, &m->lock));
    m->temporary = pm_arena_strdup(m->arena, temporary);
    *out = m, m = NULL;
out:
    pm_free(temporary);
    pm_making_destroy(&m);
    return err;
}

void pm_making_destroy(struct pm_making **m)
{
    if (!*m)
        return;
    if ((*m)->temporary && pm_remove_tree((*m)->temporary) < 0)
        PM_WARN("data", "%s", pm_error_text());
    if ((*m)->lock >= 0)
        close((*m)->lock);
    pm_arena_destroy(&(*m)->arena);
    pm_free(*m);
    *m = NULL;
}

/* ---- finishing ------------------------------------------------------------------------------ */

/* Logs "train 6 (ants 4, bees 2), test 1"; counts per class only if there are few classes. */
static void log_counts(const struct pm_making *m)
{
    struct pm_str text = { 0 };

    for (int i = 0; i < m->splits; i++) {
        const struct pm_making_split *s = &m->split[i];
        pm_str_add(&text, "%s%s %zu", i ? ", " : "", s->name, s->count);
        for (int k = 0; s->labels && m->num_classes <= 20 && k < m->num_classes; k++)
            pm_str_add(&text, "%s%s %zu%s", k ? ", " : " (", m->labels[k], s->labels[k],
                       k + 1 == m->num_classes ? ")" : "");
    }
    const int classes = m->num_classes ? m->num_classes : m->boxes.count;

    if (classes > 0)
        pm_str_add(&text, "; %d %s", classes, pm_plural(classes, "class", "classes"));
    PM_INFO("data", "%s: %s", m->dst, text.text);
    pm_str_free(&text);
}

/* Exchanges the names of the new folder and of dst in one step. Returns false if the file system
 * cannot. */
static bool exchange(const struct pm_making *m)
{
#ifdef RENAME_EXCHANGE
    return renameat2(AT_FDCWD, m->temporary, AT_FDCWD, m->dst, RENAME_EXCHANGE) == 0;
#else
    (void)m;
    return false;
#endif
}

/* Gives the new folder the name dst, then removes the folder that it replaces. */
static int put_in_place(struct pm_making *m)
{
    int err = PM_OK;
    /* Not a temporary name: if the process is killed here, the next command must not remove the old
     * data. */
    const char *old = pm_arena_printf(m->arena, "%s.former-%ld", m->dst, (long)getpid());
    const bool replaced = m->replace && pm_is_folder(m->dst);

    if (replaced && exchange(m)) {
        PM_TRY(pm_remove_tree(m->temporary)); /* the old data */
        m->temporary = NULL;
        goto out;
    }
    if (replaced && rename(m->dst, old) != 0)
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be moved away: %s", m->dst, strerror(errno)));
    if (rename(m->temporary, m->dst) != 0) {
        const int why = errno;
        if (replaced && rename(old, m->dst) != 0)
            PM_WARN("data", "%s: the former data folder is now %s", m->dst, old);
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be renamed: %s", m->dst, strerror(why)));
    }
    m->temporary = NULL;
    if (replaced)
        PM_TRY(pm_remove_tree(old));
out:
    return err;
}

int pm_making_finish(struct pm_making *m)
{
    int err = PM_OK;

    if (m->splits == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: no records: nothing to convert was found", m->dst));
    PM_TRY(pm_making_write_info(m));
    PM_TRY(put_in_place(m));
    log_counts(m);
out:
    return err;
}
