/* device: the public functions. They check every argument once; a caller's mistake is an assertion
 * failure. */
#include "device/backend.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- finding ---------------------------------------------------------------------------- */

int pm_device_list(struct pm_device_info **out, size_t *count)
{
    int err = PM_OK;
    struct pm_device_info *list = NULL;
    size_t n = 0;

    PM_TRY(pm_vulkan_list(&list, &n));
    PM_TRY(pm_opencl_list(&list, &n));
    list = pm_realloc(list, (n + 1) * sizeof *list);
    memset(&list[n], 0, sizeof list[n]);
    pm_cpu_info(&list[n++]);
    *out = list, list = NULL;
    *count = n;
out:
    pm_free(list);
    return err;
}

static bool contains(const char *text, const char *part)
{
    size_t n = strlen(part);

    for (; *text; text++)
        if (strncasecmp(text, part, n) == 0)
            return true;
    return false;
}

static int unusable(const struct pm_device_info *d, const char *where)
{
    return pm_fail(PM_EDEVICE, "%s: %s (%s) cannot be used: %s", where, d->address, d->name,
                   d->reason);
}

static bool is_opencl(const struct pm_device_info *d)
{
    return strncmp(d->address, "opencl:", 7) == 0;
}

/* Returns the index that "auto" chooses: discrete before integrated before virtual before CPU;
 * among equals, Vulkan before OpenCL, which records no commands; then the one with more memory. It
 * never chooses a software driver, because a user who names no device wants speed. */
static size_t automatic(const struct pm_device_info *list, size_t count)
{
    static const int rank[] = { [PM_KIND_CPU] = 1, [PM_KIND_DISCRETE] = 4,
                                [PM_KIND_INTEGRATED] = 3, [PM_KIND_VIRTUAL] = 2,
                                [PM_KIND_SOFTWARE] = 0 };
    size_t best = count - 1;

    for (size_t i = 0; i < count; i++) {
        const struct pm_device_info *d = &list[i], *b = &list[best];

        if (!d->usable || rank[d->kind] < rank[b->kind])
            continue;
        if (rank[d->kind] > rank[b->kind] || is_opencl(d) < is_opencl(b) ||
            (is_opencl(d) == is_opencl(b) && d->memory_bytes > b->memory_bytes))
            best = i;
    }
    return best;
}

/* Says of both backends why they list no device. */
static const char *no_driver(void)
{
    static _Thread_local char text[400];

    snprintf(text, sizeof text, "%s; %s", pm_vulkan_absence(), pm_opencl_absence());
    return text;
}

const char *pm_device_absence(const struct pm_device_info *list, size_t count)
{
    bool software = false, other = false;

    for (size_t i = 0; i < count; i++) {
        software |= list[i].kind == PM_KIND_SOFTWARE;
        other |= list[i].kind != PM_KIND_SOFTWARE && list[i].kind != PM_KIND_CPU;
    }
    return other      ? "none of the GPUs here can be used (pumice devices states the reasons)"
           : software ? "no GPU driver is installed, and software drivers are used only if they "
                        "are named"
                      : no_driver();
}

/* Whether device i's name contains the text. The name of an OpenCL driver for the CPU contains the
 * CPU's name, so such a text means the CPU, the last device. */
static bool fits_name(const struct pm_device_info *list, size_t count, size_t i, const char *name)
{
    const bool for_cpu = is_opencl(&list[i]) && list[i].kind == PM_KIND_SOFTWARE;

    return contains(list[i].name, name) && !(for_cpu && contains(list[count - 1].name, name));
}

int pm_device_find(const struct pm_device_info *list, size_t count, const char *name,
                   const char *where, size_t *index)
{
    size_t found = count;
    struct pm_str known = { 0 };
    int err;

    if (strcmp(name, "auto") == 0) {
        *index = automatic(list, count);
        return PM_OK;
    }
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(name, list[i].address) == 0 ||
            (list[i].uuid[0] && strcasecmp(name, list[i].uuid) == 0 &&
             (found == count || !list[found].usable)))
            found = i;
    if (found < count) {
        *index = found;
        return list[found].usable ? PM_OK : unusable(&list[found], where);
    }
    for (size_t i = 0; i < count; i++) {
        if (!fits_name(list, count, i, name) || (found < count && !list[i].usable))
            continue;
        if (found < count && list[found].usable)
            return pm_fail(
                PM_ECONFIG,
                "%s: \"%s\" matches both %s (%s) and %s (%s); name one by its address or UUID",
                where, name, list[found].address, list[found].name, list[i].address, list[i].name);
        found = i;
    }
    if (found < count) {
        *index = found;
        return list[found].usable ? PM_OK : unusable(&list[found], where);
    }
    for (size_t i = 0; i < count; i++)
        pm_str_add(&known, "%s%s (%s)", i ? ", " : "", list[i].address, list[i].name);
    err = pm_fail(PM_EDEVICE, "%s: no device \"%s\"; there are: auto, %s%s%s", where, name,
                  known.text, count > 1 ? "" : "; ", count > 1 ? "" : no_driver());
    pm_str_free(&known);
    return err;
}

int pm_device_open(const struct pm_device_info *info, const struct pm_device_options *options,
                   struct pm_device **out)
{
    static const struct pm_device_options defaults;
    int err = PM_OK;

    if (!options)
        options = &defaults;
    PM_TRY(info->kind == PM_KIND_CPU ? pm_cpu_open(info, options, out)
           : is_opencl(info)         ? pm_opencl_open(info, options, out)
                                     : pm_vulkan_open(info, options, out));
    pm_timeline_device(*out);
out:
    return err;
}

void pm_device_close(struct pm_device **d)
{
    if (*d) {
        assert((*d)->memory_used == 0); /* every buffer must be destroyed before */
        pm_timeline_close(*d);
        for (size_t i = 0; i < (*d)->avoided_count; i++) {
            pm_free((*d)->avoided[i].kernel);
            pm_free((*d)->avoided[i].variant);
        }
        pm_free((*d)->avoided);
        (*d)->ops->close(*d);
    }
    *d = NULL;
}

bool pm_device_lost(const struct pm_device *d)
{
    return atomic_load(&d->lost);
}

bool pm_device_hung(const struct pm_device *d)
{
    return atomic_load(&d->hung);
}

bool pm_device_ran(const struct pm_device *d)
{
    return atomic_load(&d->longest) > 0;
}

/* Marks the device as lost after PM_ELOST; every backend result passes through here. */
static int note(struct pm_device *d, int err)
{
    if (err == PM_ELOST)
        atomic_store(&d->lost, true);
    return err;
}

const struct pm_caps *pm_device_caps(const struct pm_device *d)
{
    return &d->info.caps;
}

const struct pm_device_info *pm_device_get_info(const struct pm_device *d)
{
    return &d->info;
}

uint64_t pm_device_messages(void)
{
    return pm_vulkan_messages();
}

/* ---- memory ----------------------------------------------------------------------------- */

int pm_buffer_create(struct pm_device *d, size_t size, struct pm_buffer **out)
{
    int err = PM_OK;
    char want[24], limit[24];

    assert(size > 0);
    if (size > d->info.caps.max_buffer_bytes)
        return pm_fail(PM_EMEMORY, "%s: a buffer of %s exceeds the device's limit of %s",
                       d->info.address, pm_bytes_text(size, want),
                       pm_bytes_text(d->info.caps.max_buffer_bytes, limit));
    PM_TRY(note(d, d->ops->buffer_create(d, size, out)));
    (*out)->size = size;
    d->memory_used += size;
out:
    return err;
}

void pm_buffer_destroy(struct pm_device *d, struct pm_buffer **b)
{
    if (*b) {
        d->memory_used -= (*b)->size;
        d->ops->buffer_destroy(d, *b);
    }
    *b = NULL;
}

size_t pm_buffer_size(const struct pm_buffer *b)
{
    return b->size;
}

static void check_range(const struct pm_buffer *b, size_t offset, size_t size)
{
    assert(offset % 4 == 0 && size % 4 == 0);
    assert(offset <= b->size && size <= b->size - offset);
    (void)b, (void)offset, (void)size;
}

int pm_buffer_write(struct pm_device *d, struct pm_buffer *b, size_t offset, const void *src,
                    size_t size)
{
    int err = PM_OK;

    check_range(b, offset, size);
    if (size == 0)
        return PM_OK;
    PM_TRY(pm_device_alive(d));
    PM_TRY(note(d, d->ops->buffer_write(d, b, offset, src, size)));
out:
    return err;
}

int pm_buffer_read(struct pm_device *d, struct pm_buffer *b, size_t offset, void *dst, size_t size)
{
    int err = PM_OK;

    check_range(b, offset, size);
    if (size == 0)
        return PM_OK;
    PM_TRY(pm_device_alive(d));
    PM_TRY(note(d, d->ops->buffer_read(d, b, offset, dst, size)));
out:
    return err;
}

int pm_buffer_fill(struct pm_device *d, struct pm_buffer *b, size_t offset, size_t size,
                   uint32_t word)
{
    int err = PM_OK;

    check_range(b, offset, size);
    if (size == 0)
        return PM_OK;
    PM_TRY(pm_device_alive(d));
    PM_TRY(note(d, d->ops->buffer_fill(d, b, offset, size, word)));
out:
    return err;
}

void *pm_buffer_memory(const struct pm_device *d, struct pm_buffer *b)
{
    return b && d->ops->buffer_memory ? d->ops->buffer_memory(b) : NULL;
}

uint64_t pm_device_memory_used(const struct pm_device *d)
{
    return d->memory_used;
}

/* ---- programs --------------------------------------------------------------------------- */

static void check_place(const struct pm_place *p)
{
    assert(p->size <= p->buffer->size && p->offset <= p->buffer->size - p->size);
    (void)p;
}

static void check_call(const struct pm_bound_call *c)
{
    struct pm_buf_spec spec[PM_MAX_BUFS];
    int bufs = pm_kernel_bufs(c->kernel, spec);

    for (int i = 0; i < bufs; i++) {
        if (c->buf[i].buffer) {
            check_place(&c->buf[i]);
            assert(c->buf[i].offset % 4 == 0);
        } else {
            assert(spec[i].optional || pm_access_own(spec[i].access));
        }
    }
}

/* Whether the program is a training step: "train", or "train 97x97" if there are several sizes. */
static bool is_train(const char *name)
{
    return name && strncmp(name, "train", 5) == 0 && (name[5] == '\0' || name[5] == ' ');
}

int pm_program_create(struct pm_device *d, const struct pm_program_desc *desc,
                      struct pm_program **out)
{
    int err = PM_OK;

    assert(desc->slots >= 1);
    for (size_t i = 0; i < desc->calls_count; i++)
        check_call(&desc->calls[i]);
    for (size_t i = 0; i < desc->in_count; i++)
        check_place(&desc->in[i]);
    for (size_t i = 0; i < desc->out_count; i++) {
        check_place(&desc->out[i]);
        assert(desc->out_after[i] <= desc->calls_count);
    }
    PM_TRY(pm_device_alive(d));
    PM_TRY(note(d, d->ops->program_create(d, desc, out)));
    (*out)->device = d;
    (*out)->in_count = desc->in_count;
    (*out)->out_count = desc->out_count;
    (*out)->calls_count = desc->calls_count;
    (*out)->slots = desc->slots;
    (*out)->timed = desc->timed;
    (*out)->is_train = is_train(desc->name);
    if (!d->ops->program_count)
        pm_program_count(d, desc, &(*out)->counts);
    pm_timeline_program(*out, desc);
out:
    return err;
}

void pm_program_destroy(struct pm_program **p)
{
    if (*p) {
        pm_timeline_destroy(*p);
        (*p)->device->ops->program_destroy(*p);
    }
    *p = NULL;
}

void *pm_program_in(struct pm_program *p, int slot, size_t i)
{
    assert(slot >= 0 && slot < p->slots && i < p->in_count);
    return p->device->ops->program_in(p, slot, i);
}

const void *pm_program_out(struct pm_program *p, int slot, size_t i)
{
    assert(slot >= 0 && slot < p->slots && i < p->out_count);
    return p->device->ops->program_out(p, slot, i);
}

int pm_program_submit(struct pm_program *p, int slot)
{
    struct pm_device *d = p->device;

    assert(slot >= 0 && slot < p->slots);
    pm_timeline_submit(p, slot);
    d->trains += p->is_train;
    if (d->trains > 0 && d->trains == (p->is_train ? d->options.lose_at : d->options.lose_after))
        return note(d, pm_fail(PM_ELOST, "%s (%s) was lost, as PM_LOSE%s requests", d->info.address,
                               d->info.name, p->is_train ? "" : "_AFTER"));
    return atomic_load(&d->lost) ? pm_device_alive(d) : note(d, d->ops->program_submit(p, slot));
}

int pm_program_wait_out(struct pm_program *p, int slot, size_t i)
{
    assert(slot >= 0 && slot < p->slots && i < p->out_count);
    return note(p->device, p->device->ops->program_wait_out(p, slot, i));
}

int pm_program_wait(struct pm_program *p, int slot)
{
    struct pm_device *d = p->device;
    int err;

    assert(slot >= 0 && slot < p->slots);
    err = note(d, d->ops->program_wait(p, slot));
    if (err == PM_OK && d->ops->program_seconds(p, slot) > atomic_load(&d->longest))
        atomic_store(&d->longest, d->ops->program_seconds(p, slot));
    if (err == PM_OK)
        pm_timeline_wait(p, slot);
    return err;
}

void pm_program_counts(const struct pm_program *p, struct pm_counts *out)
{
    *out = p->counts;
}

int pm_program_count(struct pm_device *d, const struct pm_program_desc *desc,
                     struct pm_counts *out)
{
    *out = (struct pm_counts){ 0 };
    if (d->ops->program_count)
        return d->ops->program_count(d, desc, out);
    for (size_t i = 0; i < desc->calls_count; i++)
        out->bytes_moved += pm_call_bytes(&desc->calls[i], NULL);
    return PM_OK;
}

const char *pm_program_variant(const struct pm_program *p, size_t i)
{
    assert(i < p->calls_count);
    return p->device->ops->program_variant(p, i);
}

double pm_program_seconds(struct pm_program *p, int slot)
{
    assert(slot >= 0 && slot < p->slots);
    return p->device->ops->program_seconds(p, slot);
}

double pm_program_begun(struct pm_program *p, int slot)
{
    assert(slot >= 0 && slot < p->slots);
    return p->device->ops->program_begun(p, slot);
}

int pm_program_call_times(struct pm_program *p, int slot, double *begin, double *end)
{
    assert(slot >= 0 && slot < p->slots && p->timed);
    return p->device->ops->program_call_times(p, slot, begin, end);
}

int pm_program_copy_times(struct pm_program *p, int slot, double *begin, double *end)
{
    assert(slot >= 0 && slot < p->slots && p->timed);
    return p->device->ops->program_copy_times(p, slot, begin, end);
}

int pm_call_scratch(const struct pm_device *d, const struct pm_kernel *k, const void *params,
                    size_t count, int level, size_t bytes[PM_MAX_BUFS])
{
    memset(bytes, 0, PM_MAX_BUFS * sizeof *bytes);
    return d->ops->call_scratch(d, k, params, count, level, bytes);
}

/* ---- variants --------------------------------------------------------------------------- */

int pm_call_variant(const struct pm_device *d, const struct pm_kernel *k, const void *params,
                    size_t count, int level, const char **variant)
{
    *variant = NULL;
    return d->ops->call_variant(d, k, params, count, level, variant);
}

uint64_t pm_device_shaders(const struct pm_device *d)
{
    return d->ops->shaders(d);
}
