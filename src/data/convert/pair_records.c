/* Writes pairs of pictures and label maps as DeepLab's records. A grey 8-bit PNG whose values are
 * the labels is stored unchanged; other maps are re-encoded. Every map is decoded once, so that a
 * wrong size or an invalid label is found here and not in training. */
#include <stdatomic.h>
#include <string.h>

#include <pumice/thread.h>

#include "data/convert/pair_records.h"

struct pm_segmentation *pm_segmentation_create(void)
{
    struct pm_segmentation *s = pm_calloc(1, sizeof *s);
    s->ignore = 255;
    s->divisor = PM_INSTANCE_DIVISOR;
    return s;
}

void pm_segmentation_destroy(struct pm_segmentation **s)
{
    if (*s)
        pm_free((*s)->pair);
    pm_free(*s);
    *s = NULL;
}

void pm_segmentation_add(struct pm_segmentation *s, const char *image, const char *label,
                         const char *filename)
{
    PM_GROW(s->pair, s->count, s->capacity);
    s->pair[s->count++] = (struct pm_pair){ .image = image, .label = label, .filename = filename };
}

/* ---- maps ----------------------------------------------------------------------------------- */

static int colour_label(const struct pm_segmentation *s, const uint8_t *rgb)
{
    for (int i = 0; i < s->colours_count; i++)
        if (!memcmp(s->colours[i].rgb, rgb, 3))
            return s->colours[i].label;
    return -1;
}

static int from_colours(const struct pm_segmentation *s, const char *data, size_t size,
                        const char *path, struct pm_label *out)
{
    int err = PM_OK, label = -1;
    struct pm_image8 im = { 0 };
    const uint8_t *last = NULL;

    PM_TRY(pm_image_decode(data, size, 3, 0, path, &im));
    const size_t count = (size_t)im.height * (size_t)im.width;
    *out = (struct pm_label){ im.height, im.width, pm_malloc(count * sizeof *out->values) };
    for (size_t i = 0; i < count; i++) {
        const uint8_t *p = im.pixels + 3 * i;
        if (!last || memcmp(last, p, 3)) /* neighbours are mostly alike */
            label = colour_label(s, p);
        last = p;
        if (label < 0)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s: the colour %d %d %d at row %zu, column %zu is not one of the %d "
                           "known colours",
                           path, p[0], p[1], p[2], i / (size_t)im.width, i % (size_t)im.width,
                           s->colours_count));
        out->values[i] = (uint16_t)label;
    }
out:
    pm_image_free(&im);
    return err;
}

/* The header's colour type; 2 and 6 are RGB. */
static bool is_rgb(const char *data, size_t size)
{
    const char *format = pm_image_format(data, size);

    return format && !strcmp(format, "png") && size > 25 && (data[25] == 2 || data[25] == 6);
}

static bool is_plain(const char *data, size_t size)
{
    return size > 25 && data[24] == 8 && data[25] == 0;
}

static int check_labels(const struct pm_segmentation *s, const struct pm_label *l, const char *path)
{
    const size_t width = (size_t)l->width, i = pm_label_stray(l, s->num_classes, s->ignore);

    if (i == (size_t)l->height * width)
        return PM_OK;
    return pm_fail(
        PM_EDATA,
        "%s: the label %d at row %zu, column %zu is neither one of the %d classes (0..%d) "
        "nor the ignore label, %d",
        path, l->values[i], i / width, i % width, s->num_classes, s->num_classes - 1, s->ignore);
}

/* Reads the map of a file. *unchanged: the record stores the file unchanged. */
static int read_map(const struct pm_segmentation *s, const char *data, size_t size,
                    const char *path, struct pm_label *out, bool *unchanged)
{
    int err = PM_OK;

    *unchanged = false;
    if (s->colours && (s->colours_always || is_rgb(data, size))) {
        PM_TRY(from_colours(s, data, size, path, out));
        return PM_OK;
    }
    PM_TRY(pm_label_decode(data, size, 0, path, out));
    *unchanged = is_plain(data, size) && !s->meaning;
    for (size_t i = 0; s->meaning && i < (size_t)out->height * (size_t)out->width; i++)
        out->values[i] = s->meaning[out->values[i]];
out:
    return err;
}

static void count_pixels(struct pm_segmentation *s, const struct pm_label *l)
{
    const size_t count = (size_t)l->height * (size_t)l->width;

    for (size_t i = 0, n = 0; i < count; i += n) {
        for (n = 1; i + n < count && l->values[i + n] == l->values[i];)
            n++;
        atomic_fetch_add(&s->pixels[l->values[i]], n);
    }
}

/* Converts a stored number at a pixel of this class to class * divisor + instance number. */
static int mean_number(const struct pm_segmentation *s, int stored, int class)
{
    const int divide = s->instance_divide;

    if (class == s->ignore)
        return 0;
    if (s->instance_meaning)
        return s->instance_meaning[stored];
    if (!s->things[class])
        return 0;
    if (divide && stored < divide && class > 0) /* only the class or nothing: a crowd */
        return (stored ? stored : class) * s->divisor;
    const int number = (divide ? stored % divide : stored) - s->instance_first + 1;
    if (number >= s->divisor)
        return PM_INSTANCE_TOO_MANY;
    return (divide ? stored / divide : class) * s->divisor + (number > 0 ? number : 0);
}

/* Converts stored numbers to ours. Fails for a number that is not an instance of the pixel's class,
 * unless the pixel is ignored. */
static int mean_instances(const struct pm_segmentation *s, const char *path,
                          const struct pm_label *classes, struct pm_label *out)
{
    const size_t width = (size_t)out->width, count = (size_t)out->height * width;

    for (size_t i = 0; i < count; i++) {
        const int stored = out->values[i], class = classes->values[i];
        const int v = mean_number(s, stored, class);

        if (v == PM_INSTANCE_TOO_MANY)
            return pm_fail(PM_EDATA,
                           "%s: the instance %d at row %zu, column %zu exceeds the limit of %d "
                           "instances of a class per picture; bad=skip skips such pictures",
                           path, stored, i / width, i % width, s->divisor - 1);
        if (v && v / s->divisor != class)
            return pm_fail(PM_EDATA,
                           "%s: the instance %d at row %zu, column %zu has class %d, but the "
                           "label map has %d there",
                           path, stored, i / width, i % width, v / s->divisor, class);
        if (!v && class && s->things[class])
            return pm_fail(PM_EDATA,
                           "%s: the number %d at row %zu, column %zu is not an instance, but the "
                           "label map has class %d there",
                           path, stored, i / width, i % width, class);
        out->values[i] = (uint16_t)v;
    }
    return PM_OK;
}

static int read_instances(const struct pm_segmentation *s, const struct pm_pair *p,
                          const struct pm_label *classes, struct pm_label *out)
{
    int err = PM_OK;
    char *data = NULL;
    size_t size = 0;

    PM_TRY(pm_file_read(p->instances, &data, &size));
    PM_TRY(pm_label_decode(data, size, 0, p->instances, out));
    if (out->height != classes->height || out->width != classes->width)
        PM_TRY(pm_fail(PM_EDATA, "%s is %d x %d, but %s is %d x %d: both must have the same size",
                       p->instances, out->height, out->width, p->label, classes->height,
                       classes->width));
    PM_TRY(mean_instances(s, p->instances, classes, out));
out:
    pm_free(data);
    return err;
}

struct maps {
    struct pm_label classes, instances;
    char *data; /* the label map's file if it is stored unchanged; owned */
    size_t size;
    bool unchanged;
};

static int read_maps(const struct pm_segmentation *s, const struct pm_pair *p, struct maps *m)
{
    int err = PM_OK;

    if (s->read)
        return s->read(s->ctx, p, &m->classes, &m->instances);
    PM_TRY(pm_file_read(p->label, &m->data, &m->size));
    PM_TRY(read_map(s, m->data, m->size, p->label, &m->classes, &m->unchanged));
    if (p->instances)
        PM_TRY(read_instances(s, p, &m->classes, &m->instances));
out:
    return err;
}

static int add_map(struct pm_segmentation *s, const struct pm_pair *p,
                   const struct pm_picture *picture, struct pm_example_builder *b)
{
    int err = PM_OK;
    uint8_t *png = NULL;
    size_t png_size = 0;
    struct maps m = { .unchanged = false };
    const struct pm_image8 *im = &picture->image;

    PM_TRY(read_maps(s, p, &m));
    if (m.classes.height != im->height || m.classes.width != im->width)
        PM_TRY(pm_fail(
            PM_EDATA,
            "%s is %d x %d, but its picture %s is %d x %d%s: both must have the same size",
            p->label, m.classes.height, m.classes.width, p->image, im->height, im->width,
            picture->orientation >= 5 ? " after the rotation that its EXIF data specifies" : ""));
    PM_TRY(check_labels(s, &m.classes, p->label));
    if (!m.unchanged)
        PM_TRY(pm_label_encode(&m.classes, p->label, &png, &png_size));
    pm_example_add_bytes(b, "image/segmentation/class/encoded",
                         m.unchanged ? (uint8_t *)m.data : png,
                         m.unchanged ? m.size : png_size);
    pm_add_text(b, "image/segmentation/class/format", "png");
    if (m.instances.values)
        PM_TRY(pm_making_instances(b, &m.instances, s->divisor, p->label));
    count_pixels(s, &m.classes);
out:
    pm_label_free(&m.classes);
    pm_label_free(&m.instances);
    pm_free(png);
    pm_free(m.data);
    return err;
}

/* ---- records -------------------------------------------------------------------------------- */

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    struct pm_segmentation *s = ctx;
    const size_t at = s->first + i;
    const struct pm_pair *p = &s->pair[s->order ? s->order[at] : at];
    const int64_t channels = 3; /* readers expect 3, whatever the file has */
    struct pm_picture picture = { 0 };
    int err = PM_OK;

    PM_TRY(pm_picture_read(p->image, &picture));
    const int64_t height = picture.image.height, width = picture.image.width;
    pm_example_add_bytes(b, "image/encoded", picture.data, picture.size);
    pm_add_text(b, "image/filename", p->filename);
    pm_add_text(b, "image/format", picture.format);
    pm_example_add_ints(b, "image/height", &height, 1);
    pm_example_add_ints(b, "image/width", &width, 1);
    pm_example_add_ints(b, "image/channels", &channels, 1);
    if (p->label)
        PM_TRY(add_map(s, p, &picture, b));
    err = 1;
out:
    pm_picture_free(&picture);
    return pm_picture_failed(err, s->bad);
}

int pm_segmentation_part(struct pm_making *m, const char *split, struct pm_segmentation *s,
                         size_t first, size_t count, int shards)
{
    const struct pm_sharding sharding = { PM_CUT_CEIL, (size_t)shards, PM_NAMES_DEEPLAB };
    uint64_t *pixels = NULL;
    int err = PM_OK;

    if (count == 0)
        return PM_OK;
    s->first = first;
    for (size_t i = 0; i < PM_COUNT(s->pixels); i++)
        atomic_store(&s->pixels[i], 0);
    PM_TRY(pm_making_split(m, split, count, &sharding, fill, s));
    pixels = pm_malloc((size_t)s->num_classes * sizeof *pixels);
    for (int i = 0; i < s->num_classes; i++)
        pixels[i] = i == s->ignore ? 0 : atomic_load(&s->pixels[i]);
    pm_making_pixels(m, pixels, s->num_classes);
out:
    pm_free(pixels);
    return err;
}

int pm_segmentation_split(struct pm_making *m, const char *split, struct pm_segmentation *s,
                          int shards)
{
    const int err = pm_segmentation_part(m, split, s, 0, s->count, shards);

    s->count = 0;
    return err;
}

int pm_segmentation_coloured(const struct pm_segmentation *s, bool *out)
{
    const char *colours = NULL, *numbers = NULL;
    int err = PM_OK;

    for (size_t i = 0; i < s->count; i++) {
        const char *path = s->pair[i].label;
        char *data = NULL;
        size_t size = 0;
        if (!path)
            continue;
        err = pm_file_read(path, &data, &size);
        if (err == PM_OK)
            *(is_rgb(data, size) ? &colours : &numbers) = path;
        pm_free(data);
        if (s->bad != PM_BAD_SKIP) /* otherwise storing it logs the warning */
            PM_TRY(err);
    }
    if (colours && numbers)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s has colours, but %s has numbers: all label maps must be of one kind",
                       colours, numbers));
    *out = colours;
    err = PM_OK;
out:
    return err;
}

struct search {
    const struct pm_segmentation *s;
    _Atomic int most;
};

static void search_some(void *ctx, size_t begin, size_t end)
{
    struct search *k = ctx;

    for (size_t n = begin; n < end; n++) {
        const char *path = k->s->pair[n].label;
        struct pm_label map = { 0 };
        char *data = NULL;
        size_t size = 0;
        int most = -1;
        bool unchanged;
        if (!path)
            continue;
        if (pm_file_read(path, &data, &size) < 0 ||
            read_map(k->s, data, size, path, &map, &unchanged) < 0) {
            PM_DEBUG("data", "%s", pm_error_text()); /* storing it logs the warning */
            map.height = 0;
        }
        for (size_t i = 0; i < (size_t)map.height * (size_t)map.width; i++)
            if (map.values[i] != k->s->ignore && map.values[i] > most)
                most = map.values[i];
        for (int had = atomic_load(&k->most); most > had;)
            if (atomic_compare_exchange_weak(&k->most, &had, most))
                break;
        pm_label_free(&map);
        pm_free(data);
    }
}

int pm_segmentation_most(const struct pm_segmentation *s)
{
    struct search k = { .s = s, .most = -1 };

    pm_parallel(s->count, 1, search_some, &k);
    return k.most;
}

/* ---- names ---------------------------------------------------------------------------------- */

int pm_name_file(struct pm_arena *a, const char *path, const char ***names, int *count)
{
    char **lines = NULL;
    size_t n = 0;
    const int err = pm_file_lines(a, path, &lines, &n);

    if (err < 0)
        return err;
    if (n == 0 || n > 65535)
        return pm_fail(PM_EDATA, "%s: %zu class names; 1..65535 are allowed", path, n);
    *names = (const char **)lines;
    *count = (int)n;
    return PM_OK;
}

int pm_colour_file(struct pm_arena *a, const char *path, const char *ignore_class, int ignore,
                   struct pm_colour **colours, int *colours_count, const char ***names, int *count)
{
    int err = PM_OK;
    char **lines = NULL;
    size_t n = 0;

    PM_TRY(pm_file_lines(a, path, &lines, &n));
    if (n == 0 || n > 256)
        PM_TRY(pm_fail(PM_EDATA, "%s: %zu colours; 1..256 are allowed", path, n));
    *colours = pm_arena_alloc(a, n * sizeof **colours);
    *names = pm_arena_alloc(a, n * sizeof **names);
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        int rgb[3], at = 0;
        if (sscanf(lines[i], "%d %d %d %n", &rgb[0], &rgb[1], &rgb[2], &at) < 3 || !lines[i][at] ||
            (rgb[0] | rgb[1] | rgb[2]) < 0 || (rgb[0] | rgb[1] | rgb[2]) > 255)
            PM_TRY(
                pm_fail(PM_EDATA,
                        "%s:%zu: \"%.40s\" must be \"RED GREEN BLUE NAME\" with numbers of 0..255",
                        path, i + 1, lines[i]));
        const bool ignored = ignore_class && !strcmp(lines[i] + at, ignore_class);
        struct pm_colour *c = &(*colours)[i];
        *c = (struct pm_colour){ .label = (uint16_t)(ignored ? ignore : *count) };
        for (int k = 0; k < 3; k++)
            c->rgb[k] = (uint8_t)rgb[k];
        if (!ignored)
            (*names)[(*count)++] = lines[i] + at;
    }
    *colours_count = (int)n;
    if (*count == (int)n && ignore_class)
        PM_TRY(pm_fail(PM_EDATA, "%s: ignore_class: no class is called \"%s\"", path,
                       ignore_class));
out:
    return err;
}

const char **pm_number_names(struct pm_arena *a, int count)
{
    const char **names = pm_arena_alloc(a, ((size_t)count + 1) * sizeof *names);

    for (int i = 0; i < count; i++)
        names[i] = pm_arena_printf(a, "%d", i);
    return names;
}

const char *pm_stem(struct pm_arena *a, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');

    return pm_arena_printf(a, "%.*s", dot ? (int)(dot - name) : (int)strlen(name), name);
}
