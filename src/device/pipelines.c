/* pipelines: from a kernel's row to compiled pipelines.
 *
 * Shader, constants and, if the shader reads it, the set of present buffers identify a pipeline.
 * Several threads compile the pipelines that a program lacks, and the driver's cache on disk keeps
 * them. If this device cannot run a variant (a feature or limit is missing, or its compiler fails),
 * the row's next simpler variant is used and the log says so.
 * PM_VARIANT=kernel:variant[,kernel:variant] forces a choice. */
#include "device/pipelines.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LEVELS = 32 };

/* ---- opening and closing ------------------------------------------------------------ */

void pm_pipelines_open(struct pm_shader_device *d, const struct pm_pipeline_ops *ops)
{
    d->pipelines.ops = ops;
    pthread_mutex_init(&d->pipelines.lock, NULL);
}

void pm_pipelines_close(struct pm_shader_device *d, bool idle)
{
    struct pm_pipelines *all = &d->pipelines;

    if (!all->ops)
        return;
    for (size_t i = 0; i < all->count; i++) {
        if (idle && all->list[i]->compiled)
            all->ops->destroy(d, all->list[i]);
        pm_free(all->list[i]);
    }
    pm_free(all->list);
    pthread_mutex_destroy(&all->lock);
}

void pm_shader_device_leave(struct pm_shader_device *d)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct pm_shader_device *all;

    pthread_mutex_lock(&lock);
    d->next = all;
    all = d;
    pthread_mutex_unlock(&lock);
    PM_WARN(d->pipelines.ops->log,
            "%s: its driver does not return: its threads and memory are freed only at exit",
            d->base.info.address);
}

int pm_shader_device_lose(struct pm_shader_device *d, const char *why)
{
    atomic_store(&d->base.lost, true);
    return pm_fail(PM_ELOST, "%s (%s) was lost: %s", d->base.info.address, d->base.info.name, why);
}

int pm_shader_device_hang(struct pm_shader_device *d, double idle)
{
    char why[160];

    atomic_store(&d->base.hung, true);
    snprintf(why, sizeof why, "no submission ended for %.3g seconds (run.hang_seconds=%g)", idle,
             pm_hang_seconds(&d->base));
    return pm_shader_device_lose(d, why);
}

/* ---- looking one up ---------------------------------------------------------------- */

static const struct pm_shader *find_shader(const struct pm_shader_device *d, const char *name)
{
    for (const struct pm_shader *s = d->pipelines.extra; s && s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    for (const struct pm_shader *s = pm_shader_table; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

/* Bit i: buffer i of the call is present, or its row says that it always is. */
static uint32_t present_buffers(const struct pm_bound_call *c, const struct pm_buf_spec *spec,
                                int bufs)
{
    uint32_t present = UINT32_MAX;

    for (int i = 0; i < bufs; i++)
        if (spec[i].optional && c->buf[i].size == 0)
            present &= ~(1u << i);
    return present;
}

/* Returns the pipeline of a dispatch. A new one is made but not yet compiled. NULL: no such
 * shader. */
static struct pm_pipeline *get(struct pm_shader_device *d, const struct pm_dispatch *dispatch,
                               uint32_t present, uint32_t push_bytes)
{
    struct pm_pipelines *all = &d->pipelines;
    const struct pm_shader *shader = find_shader(d, dispatch->shader);
    struct pm_pipeline *p;
    size_t bytes = (size_t)dispatch->specs * sizeof *dispatch->spec;

    if (shader && !pm_spirv_reads_presence(shader->words, shader->bytes / 4))
        present = UINT32_MAX;
    for (size_t i = 0; shader && i < all->count; i++) {
        p = all->list[i];
        if (p->shader == shader && p->specs == dispatch->specs && p->present == present &&
            p->push_bytes == push_bytes && memcmp(p->spec, dispatch->spec, bytes) == 0)
            return p;
    }
    if (!shader)
        return NULL;
    p = pm_calloc(1, all->ops->pipeline_size);
    p->shader = shader;
    p->specs = dispatch->specs;
    p->present = present;
    p->push_bytes = push_bytes;
    memcpy(p->spec, dispatch->spec, bytes);
    PM_GROW(all->list, all->count, all->capacity);
    all->list[all->count++] = p;
    return p;
}

/* ---- choosing ----------------------------------------------------------------------- */

/* Copies the variant that PM_VARIANT names for a kernel; false if it names none. */
static bool forced_variant(const char *kernel, char out[64])
{
    const char *s = getenv("PM_VARIANT");
    size_t n = strlen(kernel);

    while (s && *s) {
        size_t length = strcspn(s, ",");

        if (length > n + 1 && strncmp(s, kernel, n) == 0 && s[n] == ':') {
            snprintf(out, 64, "%.*s", (int)(length - n - 1), s + n + 1);
            return true;
        }
        s += length + (s[length] == ',');
    }
    return false;
}

static bool pick_level(const struct pm_shader_device *d, const struct pm_kernel *k,
                       const void *params, size_t count, int level, struct pm_picks *out)
{
    memset(out, 0, sizeof *out);
    if (k->pick)
        return k->pick(&d->base.info.caps, params, count, level, out);
    return level == 0 && pm_pick_elements(k->shader ? k->shader : k->name, 64, count, out);
}

/* Picks level *level, or the next level that is not avoided, or the variant that PM_VARIANT names.
 * *last: there is no fallback. PM_EDEVICE without a text: no level is left. */
static int pick(const struct pm_shader_device *d, const struct pm_kernel *k, const void *params,
                size_t count, int *level, struct pm_picks *out, bool *last)
{
    char forced[64];
    struct pm_str known = { 0 };
    bool found = false;
    int err = PM_OK;

    *last = forced_variant(k->name, forced);
    for (; !*last && *level < MAX_LEVELS; ++*level) {
        if (!pick_level(d, k, params, count, *level, out))
            return PM_EDEVICE;
        if (!pm_device_avoids(&d->base, k->name, out->variant))
            return PM_OK;
    }
    for (int i = 0; i < MAX_LEVELS && !found && pick_level(d, k, params, count, i, out); i++) {
        found = strcmp(out->variant, forced) == 0;
        pm_str_add(&known, "%s%s", known.length ? ", " : "", out->variant);
    }
    if (!found)
        err = pm_fail(PM_ECONFIG, "PM_VARIANT: %s has no variant \"%s\" on %s; it has %s", k->name,
                      forced, d->base.info.address, known.length ? known.text : "none");
    else if (pm_device_avoids(&d->base, k->name, forced))
        err = pm_fail(PM_EDEVICE, "PM_VARIANT: %s's variant \"%s\" is avoided on %s: its results "
                      "are wrong there", k->name, forced, d->base.info.address);
    pm_str_free(&known);
    return err;
}

/* Writes why no level of a row is left. */
static void nothing_left(const struct pm_shader_device *d, const struct pm_kernel *k, char *why,
                         size_t size)
{
    struct pm_str avoided = { 0 };

    for (size_t i = 0; i < d->base.avoided_count; i++)
        if (strcmp(d->base.avoided[i].kernel, k->name) == 0)
            pm_str_add(&avoided, "%s%s", avoided.length ? ", " : "", d->base.avoided[i].variant);
    if (avoided.length)
        snprintf(why, size, "no variant is left, these give wrong results: %s", avoided.text);
    else
        snprintf(why, size, "its row has no variant for this device");
    pm_str_free(&avoided);
}

int pm_shader_call_scratch(const struct pm_device *base, const struct pm_kernel *k,
                           const void *params, size_t count, int level, size_t bytes[PM_MAX_BUFS])
{
    const struct pm_shader_device *d = (const struct pm_shader_device *)base;
    struct pm_picks picks;
    char why[400];
    bool last;
    int err = pick(d, k, params, count, &level, &picks, &last);

    if (err == PM_OK)
        memcpy(bytes, picks.scratch, sizeof picks.scratch);
    if (err == PM_OK || last)
        return err;
    nothing_left(d, k, why, sizeof why);
    return pm_fail(PM_EDEVICE, "%s: %s cannot run: %s", d->base.info.address, k->name, why);
}

int pm_shader_call_variant(const struct pm_device *base, const struct pm_kernel *k,
                       const void *params, size_t count, int level, const char **variant)
{
    struct pm_picks picks;
    bool last;
    int err;

    err = pick((const struct pm_shader_device *)base, k, params, count, &level, &picks, &last);
    if (err == PM_OK && !(last && level > 0))
        *variant = picks.variant;
    return last ? err : PM_OK;
}

uint64_t pm_shader_hash(const struct pm_device *base)
{
    const struct pm_shader_device *d = (const struct pm_shader_device *)base;
    const struct pm_shader *const tables[] = { d->pipelines.extra, pm_shader_table };
    uint64_t h = 1;

    for (size_t i = 0; i < PM_COUNT(tables); i++)
        for (const struct pm_shader *s = tables[i]; s && s->name; s++) {
            h = pm_hash_bytes(s->name, strlen(s->name), h);
            h = pm_hash_bytes(s->words, s->bytes, h);
        }
    return h;
}

uint32_t pm_push_bytes(const struct pm_kernel *k, int bufs, bool *by_address)
{
    uint32_t addresses = 8 * (uint32_t)bufs, bytes = addresses + (uint32_t)k->params_size;

    *by_address = bytes > PM_PUSH_BYTES;
    return *by_address ? addresses + 8 : bytes;
}

size_t pm_wide_params(const struct pm_kernel *k)
{
    struct pm_buf_spec spec[PM_MAX_BUFS];
    bool by_address;

    pm_push_bytes(k, pm_kernel_bufs(k, spec), &by_address);
    return by_address ? pm_align_place(k->params_size) : 0;
}

/* Whether the picked dispatches can run; if not, `why` holds the reason. */
static bool fits(const struct pm_shader_device *d, const struct pm_bound_call *c,
                 const struct pm_picks *picks, char *why, size_t size)
{
    for (int i = 0; i < PM_MAX_BUFS; i++)
        if (picks->scratch[i] > c->buf[i].size) {
            snprintf(why, size, "it needs %zu bytes of scratch, but the plan has %zu",
                     picks->scratch[i], c->buf[i].size);
            return false;
        }
    for (int i = 0; i < picks->count; i++)
        for (int k = 0; k < 3; k++)
            if (picks->d[i].groups[k] > d->base.info.caps.max_groups[k]) {
                snprintf(why, size, "it needs %u workgroups along %c, but the device's limit is %u",
                         picks->d[i].groups[k], "xyz"[k], d -> base.info.caps.max_groups[k]);
                return false;
            }
    return true;
}

/* Picks the next level that fits and looks up its pipelines. *why holds the reason for the last
 * refusal and is kept. */
static int choose(struct pm_shader_device *d, const struct pm_bound_call *c, struct pm_picked *out,
                  char *why, size_t size)
{
    struct pm_buf_spec spec[PM_MAX_BUFS];
    int bufs = pm_kernel_bufs(c->kernel, spec), err = PM_OK;
    bool by_address, last = false;
    uint32_t push_bytes = pm_push_bytes(c->kernel, bufs, &by_address);
    uint32_t present = present_buffers(c, spec, bufs);

    if (push_bytes > PM_PUSH_BYTES)
        return pm_fail(PM_EFAIL, "%s: %d buffers and params do not fit a push block of %d bytes",
                       c->kernel->name, bufs, PM_PUSH_BYTES);
    for (; out->level < MAX_LEVELS && !last; out->level++) {
        err = pick(d, c->kernel, c->params, c->count, &out->level, &out->picks, &last);
        if (err < 0 && last)
            return err;
        if (err < 0)
            break;
        if (!fits(d, c, &out->picks, why, size))
            continue;
        for (int i = 0; i < out->picks.count; i++)
            if (!(out->pipeline[i] = get(d, &out->picks.d[i], present, push_bytes)))
                return pm_fail(PM_EFAIL, "%s: there is no shader %s in this program",
                               c->kernel->name, out->picks.d[i].shader);
        return PM_OK;
    }
    if (!why[0])
        nothing_left(d, c->kernel, why, size);
    return pm_fail(PM_EDEVICE, "%s: %s (%s) cannot run: %s", d->base.info.address, c->label,
                   c->kernel->name, why);
}

int pm_pick_only(struct pm_shader_device *d, const struct pm_bound_call *c, struct pm_picks *out,
                    bool whole[PM_MAX_DISPATCHES])
{
    char why[400] = "";
    int level = 0, err = PM_OK;
    bool last = false, found = false;

    for (; level < MAX_LEVELS && !found && !last; level++) {
        if ((err = pick(d, c->kernel, c->params, c->count, &level, out, &last)) < 0)
            break;
        found = fits(d, c, out, why, sizeof why);
    }
    if (!found && err < 0 && last)
        return err;
    if (!found) {
        if (!why[0])
            nothing_left(d, c->kernel, why, sizeof why);
        return pm_fail(PM_EDEVICE, "%s: %s cannot run: %s", d->base.info.address, c->kernel->name,
                       why);
    }
    for (int i = 0; i < out->count; i++) {
        const struct pm_shader *s = find_shader(d, out->d[i].shader);
        struct pm_module_info info = { 0 };
        uint32_t *words = NULL;
        size_t count;

        if (s)
            PM_TRY(pm_spirv_freeze(s->words, s->bytes / sizeof *words, out->d[i].spec,
                                out->d[i].specs, UINT32_MAX, &words, &count, &info));
        pm_free(words);
        whole[i] = info.uses_group_count;
    }
out:
    return err;
}

/* Returns the first of a call's pipelines that did not compile, or NULL. */
static struct pm_pipeline *broken(const struct pm_picked *p)
{
    for (int i = 0; i < p->picks.count; i++)
        if (p->pipeline[i]->failed)
            return p->pipeline[i];
    return NULL;
}

/* After compiling: moves a call with a failed pipeline to its next level. *again: there is more to
 * compile. */
static int fall_back(struct pm_shader_device *d, const struct pm_bound_call *c, struct pm_picked *p,
                     bool *again)
{
    int err = PM_OK;
    struct pm_pipeline *bad = broken(p);
    char why[400], forced[64];

    if (!bad)
        return PM_OK;
    snprintf(why, sizeof why, "variant %s: %s: %s", p->picks.variant, bad->shader->name, bad->why);
    if (bad->failed != PM_EDEVICE || forced_variant(c->kernel->name, forced))
        return pm_fail(bad->failed, "%s: %s (%s): %s", d->base.info.address, c->label,
                       c->kernel->name, why);
    p->level++;
    PM_TRY(choose(d, c, p, why, sizeof why));
    if (!bad->logged)
        PM_WARN(d->pipelines.ops->log, "%s: %s: %s; %s is used instead", d->base.info.address,
                c->kernel->name, why, p->picks.variant);
    bad->logged = *again = true;
out:
    return err;
}

int pm_pick_all(struct pm_shader_device *d, const struct pm_program_desc *desc,
                struct pm_picked *out)
{
    int err = PM_OK;
    bool again = true;

    pthread_mutex_lock(&d->pipelines.lock);
    for (size_t i = 0; i < desc->calls_count; i++) {
        char why[400] = "";

        out[i].level = desc->levels ? desc->levels[i] : 0;
        PM_TRY(choose(d, &desc->calls[i], &out[i], why, sizeof why));
    }
    while (again) {
        again = false;
        PM_TRY(pm_compile_new(d));
        for (size_t i = 0; i < desc->calls_count; i++)
            PM_TRY(fall_back(d, &desc->calls[i], &out[i], &again));
    }
out:
    pthread_mutex_unlock(&d->pipelines.lock);
    return err;
}
