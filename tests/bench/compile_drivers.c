#include "bench/compile_drivers.h"

#include <pumice/base.h>

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct driver drivers[] = {
#define DRIVER(name, class, rules, icd, stand_in, variable, value)                                 \
    { #name, PM_CLASS_##class, #rules, #icd, #stand_in, #variable, #value },
#include "bench/drivers.def"
#undef DRIVER
};

const struct driver *drivers_at(int i)
{
    return (size_t)i < PM_COUNT(drivers) ? &drivers[i] : NULL;
}

const struct driver *drivers_find(const char *name)
{
    for (size_t i = 0; i < PM_COUNT(drivers); i++)
        if (strcmp(drivers[i].name, name) == 0)
            return &drivers[i];
    return NULL;
}

/* ---- files ------------------------------------------------------------------------------ */

/* The folder that third_party/drivers.sh fills. */
static const char *folder(void)
{
    const char *other = getenv("PUMICE_DRIVERS");

    return other ? other : PUMICE_DRIVERS_FOLDER;
}

/* The first file that matches; an empty text if there is none. */
static void find(struct pm_str *out, const char *pattern)
{
    glob_t g = { 0 };

    if (out->length == 0 && glob(pattern, 0, NULL, &g) == 0)
        pm_str_add(out, "%s", g.gl_pathv[0]);
    globfree(&g);
}

/* The files of a driver from one place; an empty text: not here, or not needed. */
struct files {
    struct pm_str icd, stand_in, loader, libraries;
};

static void find_files(const struct driver *d, enum driver_origin from, struct files *f)
{
    static const char *const places[] = { "/usr/share", "/usr/local/share", "/etc" };
    struct pm_str s = { 0 };

    if (from == DRIVER_UNPACKED) {
        pm_str_add(&f->icd, "%s/mesa/usr/share/vulkan/icd.d/%s_icd.json", folder(), d->icd);
        pm_str_add(&f->loader, "%s/loader", folder());
        pm_str_add(&f->libraries, "%s/libraries", folder());
    } else {
        for (size_t i = 0; i < PM_COUNT(places); i++) {
            pm_str_free(&s);
            pm_str_add(&s, "%s/vulkan/icd.d/%s_icd*.json", places[i], d->icd);
            find(&f->icd, s.text);
        }
    }
    pm_str_free(&s);
    if (strcmp(d->stand_in, "intel") == 0)
        pm_str_add(&f->stand_in, "%s/libintel_noop_drm_shim.so", folder());
    else if (strcmp(d->stand_in, "none") != 0)
        pm_str_add(&f->stand_in, "%s/libraries/lib%s_noop_drm_shim.so", folder(), d->stand_in);
}

static void drop_files(struct files *f)
{
    pm_str_free(&f->icd);
    pm_str_free(&f->stand_in);
    pm_str_free(&f->loader);
    pm_str_free(&f->libraries);
}

static bool is_here(const struct pm_str *s)
{
    return s->length > 0 && pm_file_exists(s->text);
}

bool drivers_have(const struct driver *d, enum driver_origin from)
{
    struct files f = { 0 };
    bool here;

    /* Other stand-ins than Intel's need the C library that was unpacked with them. */
    if ((from == DRIVER_NULL_DEVICE && strcmp(d->icd, "radeon") != 0) ||
        (from == DRIVER_OWN && strcmp(d->icd, "intel") != 0))
        return false;
    find_files(d, from, &f);
    here = is_here(&f.icd) && (from != DRIVER_UNPACKED || is_here(&f.loader)) &&
           (from == DRIVER_NULL_DEVICE || f.stand_in.length == 0 || is_here(&f.stand_in));
    drop_files(&f);
    return here;
}

/* ---- processes -------------------------------------------------------------------------- */

/* In the new process. */
static void set_environment(const struct driver *d, enum driver_origin from, const struct files *f,
                            const char *cache)
{
    setenv("VK_DRIVER_FILES", f->icd.text, 1);
    setenv("VK_ICD_FILENAMES", f->icd.text, 1); /* loaders older than 1.3.207 */
    setenv("XDG_CACHE_HOME", cache, 1);
    setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
    setenv("OMP_WAIT_POLICY", "passive", 1);
    setenv("NVK_I_WANT_A_BROKEN_VULKAN_DRIVER", "1", 1); /* for chips without conformance */
    unsetenv("PM_VARIANT");
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("RADV_FORCE_FAMILY");
    if (from == DRIVER_NULL_DEVICE)
        setenv("RADV_FORCE_FAMILY", d->value, 1);
    else
        setenv(d->variable, d->value, 1);
    if (from == DRIVER_OWN)
        setenv("LD_PRELOAD", f->stand_in.text, 1);
}

/* Replaces the process. */
static void start(enum driver_origin from, const struct files *f, char *const argv[])
{
    const char *all[32] = { f->loader.text, "--library-path", f->libraries.text };
    size_t n = 3;

    if (from != DRIVER_UNPACKED) {
        execvp(argv[0], argv);
    } else {
        if (f->stand_in.length > 0)
            all[n++] = "--preload", all[n++] = f->stand_in.text;
        for (size_t i = 0; argv[i] && n + 1 < PM_COUNT(all); i++)
            all[n++] = argv[i];
        execv(f->loader.text, (char *const *)all);
    }
    fprintf(stderr, "%s cannot be started\n", argv[0]);
    _exit(1);
}

int drivers_run(const struct driver *d, enum driver_origin from, bool quiet, char *const argv[])
{
    const char *temporary = getenv("TMPDIR");
    struct pm_str cache = { 0 };
    struct files f = { 0 };
    int status = 0;
    pid_t child;

    pm_str_add(&cache, "%s/pumice-drivers-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(cache.text)) {
        fprintf(stderr, "%s: no temporary folder can be made there\n", cache.text);
        pm_str_free(&cache);
        return 1;
    }
    find_files(d, from, &f);
    fflush(stdout);
    if ((child = fork()) == 0) {
        if (quiet) {
            int null = open("/dev/null", O_WRONLY);

            dup2(null, STDERR_FILENO);
        }
        set_environment(d, from, &f, cache.text);
        start(from, &f, argv);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0)
        ;
    pm_remove_tree(cache.text);
    pm_str_free(&cache);
    drop_files(&f);
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
