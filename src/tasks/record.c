/* record: record.h has the contract. */
#include "tasks/record.h"
#include "tasks/slow_pictures.h"

#include <string.h>

int pm_record_damage(int err)
{
    return err == PM_EDATA ? PM_ECORRUPT : err;
}

int pm_record_check(const struct pm_task_facts *s, int least)
{
    if (s->channels != 1 && s->channels != 3)
        return pm_fail(PM_ECONFIG, "input.channels: %d; allowed are 1 (grey) and 3 (colour)",
                       s->channels);
    if (s->num_classes < least && s->labels_offset == 0)
        return pm_fail(PM_ECONFIG,
                       "model.num_classes: %d in the config or the data; at least %d %s needed",
                       s->num_classes, least, least > 1 ? "are" : "is");
    if (s->num_classes < least)
        return pm_fail(PM_ECONFIG, "data.labels_offset: %d leaves %d %s; at least %d %s needed",
                       s->labels_offset, s->num_classes,
                       pm_plural(s->num_classes, "class", "classes"), least,
                       least > 1 ? "are" : "is");
    return PM_OK;
}

const struct pm_augment *pm_task_augment(const struct pm_task_facts *s, int part)
{
    return s->augments ? s->augments[part] : s->augment;
}

static char *first_line(const struct pm_example *e, const char *const keys[2])
{
    for (size_t k = 0; k < 2; k++) {
        const uint8_t *data;
        size_t size;

        if (pm_example_bytes(e, keys[k], &data, &size) == 1 && size > 0) {
            char *name = pm_malloc(size + 1);

            memcpy(name, data, size);
            name[size] = '\0';
            if (pm_is_line(name))
                return name;
            pm_free(name);
        }
    }
    return NULL;
}

char *pm_record_id(const struct pm_example *e)
{
    return first_line(e, (const char *const[2]){ "image/source_id", "image/filename" });
}

char *pm_record_file(const struct pm_example *e)
{
    return first_line(e, (const char *const[2]){ "image/filename", "image/source_id" });
}

struct pm_field pm_record_images(const struct pm_task_facts *s, struct pm_frame frame)
{
    return (struct pm_field){ "images", PM_F32, PM_SHAPE3(frame.height, frame.width, s->channels),
                              0, { .low = -1, .high = 1 } };
}

int pm_record_place(const struct pm_task_facts *s, bool train, const struct pm_sample *sample,
                    const struct pm_loader_record *r, struct pm_placed *out)
{
    const struct pm_input input = { s->preprocessing, s->preprocessing_cfg,
                                    pm_task_augment(s, r->part) };
    const struct pm_occasion o = {
        .height = r->frame.height, .width = r->frame.width, .channels = s->channels,
        .train = train, .own_size = s->own_sizes, .seed = r->seed,
        .step = (uint32_t)r->step, .example = r->example, .where = r->where,
        .choice = r->choice,
    };

    return pm_place(&input, sample, &o, out);
}

int pm_record_need(const struct pm_task_facts *s, const struct pm_occasion *o, int height,
                   int width, struct pm_frame *out)
{
    const struct pm_image8 picture = { height, width, s->channels, NULL };
    const struct pm_sample sample = { .picture = &picture };
    const struct pm_input input = { s->preprocessing, s->preprocessing_cfg,
                                    pm_task_augment(s, o->part) };
    const struct pm_occasion occasion = {
        .height = s->height, .width = s->width, .channels = s->channels, .train = true,
        .seed = o->seed, .step = o->step, .example = o->example, .where = o->where,
    };
    struct pm_placed placed;
    int err = PM_OK;

    PM_TRY(pm_place(&input, &sample, &occasion, &placed));
    *out = pm_placed_need(&placed);
out:
    return err;
}

int pm_record_check_augment(const struct pm_task_facts *s, unsigned carries)
{
    char where[512];
    int err = PM_OK;

    if (s->augment) {
        snprintf(where, sizeof where, "%s: input.augment",
                 pm_config_source(s->config, "input.augment"));
        err = pm_augment_check(s->augment, carries, s->preprocessing->resizes, where);
    }
    for (int i = 0; err == PM_OK && i < s->augments_count; i++) {
        snprintf(where, sizeof where, "%s: data.folders.%d.augment",
                 pm_config_source(s->config, "data.folders"), i);
        if (s->augments[i] && s->augments[i] != s->augment)
            err = pm_augment_check(s->augments[i], carries, s->preprocessing->resizes, where);
    }
    return err;
}

static int read_size(const struct pm_example *e, const char *key, int64_t otherwise,
                     const char *where, int64_t *out)
{
    const int found = pm_example_int(e, key, out);

    if (found < 0)
        return found;
    if (found == 0)
        *out = otherwise;
    if (*out < 1 || *out > 1 << 20)
        return pm_fail(PM_EDATA, "%s: %s: %lld is outside 1..%d", where, key, (long long)*out,
                       1 << 20);
    return PM_OK;
}

/* Reads raw pixels, for records whose format is "raw". */
static int read_raw(const struct pm_example *e, const uint8_t *data, size_t size, int channels,
                    const char *where, struct pm_image8 *out)
{
    int64_t h, w, c;
    int err = PM_OK;

    PM_TRY(read_size(e, "image/height", 0, where, &h));
    PM_TRY(read_size(e, "image/width", 0, where, &w));
    const uint64_t area = (uint64_t)h * (uint64_t)w;
    const int64_t held = area ? (int64_t)(size / area) : 0;
    PM_TRY(read_size(e, "image/channels", held ? held : 1, where, &c));
    const bool fits = channels == PM_GREY_OR_COLOR ? c == 1 || c == 3 : c == channels;
    if (!fits || area * (uint64_t)c != size)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: image/encoded: %zu raw bytes do not make a picture of %lldx%lldx%lld "
                       "(%s channels are needed)",
                       where, size, (long long)h, (long long)w, (long long)c,
                       channels == 3   ? "3"
                       : channels == 1 ? "1"
                                       : "1 or 3"));
    *out = (struct pm_image8) { (int)h, (int)w, (int)c, pm_malloc(size) };
    memcpy(out->pixels, data, size);
out:
    return err;
}

/* Finds the bytes of the record's picture. raw: they are pixels without a file format. */
static int find_image(const struct pm_example *e, const char *where, const uint8_t **data,
                      size_t *size, bool *raw)
{
    const uint8_t *format = NULL;
    size_t format_size = 0;
    int found = pm_example_bytes(e, "image/encoded", data, size);

    if (found < 0)
        return found;
    if (found == 0 || *size == 0)
        return pm_fail(PM_EDATA, "%s: the record has no image/encoded", where);
    if ((found = pm_example_bytes(e, "image/format", &format, &format_size)) < 0)
        return found;
    *raw = format_size == 3 && (memcmp(format, "raw", 3) == 0 || memcmp(format, "RAW", 3) == 0);
    return PM_OK;
}

/* Warns about a picture that took long to decode. */
static void note_time(const struct pm_example *e, const char *where, const struct pm_image8 *im,
                      double seconds)
{
    char *name;

    if (seconds <= PM_SLOW_SECONDS)
        return;
    name = pm_record_file(e);
    pm_slow_picture_log(&(struct pm_slow_picture){ name ? name : where, im->height, im->width,
                                                   seconds });
    pm_free(name);
}

int pm_record_image(const struct pm_example *e, int channels, const char *where,
                    struct pm_image8 *out)
{
    const uint8_t *data;
    size_t size;
    bool raw = false;
    const double begun = pm_thread_seconds();
    int err = PM_OK;

    PM_TRY(find_image(e, where, &data, &size, &raw));
    err = raw ? read_raw(e, data, size, channels, where, out)
              : pm_image_decode(data, size, channels, 0, where, out);
    if (err == PM_OK)
        note_time(e, where, out, pm_thread_seconds() - begun);
out:
    return err;
}

int pm_record_open_image(const struct pm_task_facts *s, bool train, const struct pm_example *e,
                         int channels, const struct pm_loader_record *r, struct pm_image8 *out)
{
    const struct pm_augment *augment = pm_task_augment(s, r->part);
    const uint8_t *data;
    size_t size;
    bool raw;
    int err = PM_OK;

    if (!train || !s->scaled_jpeg || channels != 3 || (augment && augment->mosaic))
        return pm_record_image(e, channels, r->where, out);
    PM_TRY(find_image(e, r->where, &data, &size, &raw));
    const char *format = raw ? NULL : pm_image_format(data, size);
    if (!format || strcmp(format, "jpeg") != 0)
        return pm_record_image(e, channels, r->where, out);
    *out = (struct pm_image8){ .channels = channels };
    PM_TRY(pm_image_measure(data, size, 0, r->where, &out->height, &out->width));
out:
    return err;
}

int pm_record_input(const struct pm_example *e, const struct pm_placed *placed,
                    const struct pm_image8 *picture, float *out)
{
    const char *where = placed->target.where;
    const double begun = pm_thread_seconds();
    struct pm_image8 late = { 0 };
    const uint8_t *data;
    size_t size;
    bool raw;
    int err = PM_OK;

    if (!picture->pixels) {
        PM_TRY(find_image(e, where, &data, &size, &raw));
        PM_TRY(pm_image_decode_small(data, size, picture->channels, 0, pm_placed_shrink(placed),
                                     where, &late));
        note_time(e, where, picture, pm_thread_seconds() - begun);
        picture = &late;
    }
    pm_placed_picture(placed, picture, out);
out:
    pm_image_free(&late);
    return pm_record_damage(err);
}

/* Reads the size of the record's picture, upright, from its header. */
static int measure(const struct pm_example *e, const char *where, int *height, int *width)
{
    const uint8_t *data;
    size_t size;
    bool raw = false;
    int64_t h, w;
    int err = PM_OK;

    PM_TRY(find_image(e, where, &data, &size, &raw));
    if (!raw) {
        err = pm_image_measure(data, size, 0, where, height, width);
        goto out;
    }
    PM_TRY(read_size(e, "image/height", 0, where, &h));
    PM_TRY(read_size(e, "image/width", 0, where, &w));
    *height = (int)h;
    *width = (int)w;
out:
    return err;
}

int pm_record_frame(void *sampler, const struct pm_loader_record *r, struct pm_frame *out)
{
    const struct pm_sampler *s = sampler;
    const struct pm_occasion o = { .train = s->train, .seed = r->seed, .step = (uint32_t)r->step,
                                   .example = r->example, .where = r->where, .part = r->part };
    struct pm_example *e = NULL;
    int height, width, err = PM_OK;

    PM_TRY(pm_record_damage(pm_example_parse(r->bytes, r->size, r->where, &e)));
    PM_TRY(pm_record_damage(measure(e, r->where, &height, &width)));
    if (s->train && s->row->need)
        PM_TRY(s->row->need(sampler, e, r, height, width, out));
    else
        PM_TRY(s->row->frame(s->task, &o, height, width, out));
out:
    pm_example_destroy(&e);
    return err;
}

int pm_record_check_size(const struct pm_task *t,
                         int (*frame)(const struct pm_task *t, const struct pm_occasion *o,
                                      int height, int width, struct pm_frame *out),
                         const struct pm_image8 *picture, const struct pm_loader_record *r)
{
    const struct pm_occasion o = { .where = r->where };
    struct pm_frame needs;
    int err = PM_OK;

    PM_TRY(frame(t, &o, picture->height, picture->width, &needs));
    if (needs.height != r->frame.height || needs.width != r->frame.width)
        PM_TRY(pm_fail(PM_ECORRUPT,
                       "%s: the picture's header and its pixels differ in size: it needs an input "
                       "of %d x %d instead of %d x %d. Export it again, or remove it", r->where,
                       needs.height, needs.width, r->frame.height, r->frame.width));
out:
    return err;
}

void pm_record_fields(void *sampler, struct pm_frame frame, struct pm_field_list *out)
{
    const struct pm_sampler *s = sampler;

    s->row->fields(s->task, s->train, frame, out);
}

int pm_record_picture(const struct pm_task_facts *s, const uint8_t *record, size_t size,
                      const char *where, struct pm_image8 *out)
{
    struct pm_example *e = NULL;
    int err = PM_OK;

    PM_TRY(pm_example_parse(record, size, where, &e));
    PM_TRY(pm_record_image(e, s->channels, where, out));
out:
    pm_example_destroy(&e);
    return err;
}

int pm_record_save(const struct pm_example *e, const char *key, const char *stem)
{
    int err = PM_OK;
    const uint8_t *data = NULL;
    size_t size = 0;
    struct pm_str whole = { 0 };

    PM_TRY(pm_example_bytes(e, key, &data, &size));
    if (!data || size == 0)
        goto out;
    const char *format = pm_image_format(data, size);
    pm_str_add(&whole, "%s.%s", stem, !format ? "raw" : strcmp(format, "jpeg") ? format : "jpg");
    PM_TRY(pm_file_write(whole.text, data, size));
out:
    pm_str_free(&whole);
    return err;
}
