/* Lists of picture files, and reading a picture file. */
#include <string.h>

#include "data/convert/convert.h"
#include "data/folder_chain.h"
#include "data/render.h"

/* ---- lists ---------------------------------------------------------------------------------- */

void pm_sources_add(struct pm_sources *s, const char *path, const char *name, int label)
{
    PM_GROW(s->item, s->count, s->capacity);
    s->item[s->count++] = (struct pm_source){ path, name, label };
}

void pm_sources_leave(struct pm_sources *s, const char *path, const char *why)
{
    PM_GROW(s->left, s->left_count, s->left_capacity);
    s->left[s->left_count++] = (struct pm_left_out){ path, why };
}

void pm_sources_warn(const struct pm_sources *s)
{
    enum { MOST_NAMED = 100 };

    for (size_t i = 0; i < s->left_count && i < MOST_NAMED; i++)
        PM_WARN("data", "%s: left out: %s", s->left[i].path, s->left[i].why);
    if (s->left_count > MOST_NAMED)
        PM_WARN("data", "%zu more %s left out", s->left_count - MOST_NAMED,
                pm_plural((double)(s->left_count - MOST_NAMED), "file is", "files are"));
}

void pm_sources_free(struct pm_sources *s)
{
    pm_free(s->item);
    pm_free(s->left);
    *s = (struct pm_sources){ 0 };
}

int pm_class_folders(struct pm_arena *a, const char *root, const char ***out, int *count)
{
    char **names = NULL;
    size_t n = 0;
    const int err = pm_list_folder(a, root, &names, &n);

    if (err < 0)
        return err;
    *out = pm_arena_alloc(a, (n + 1) * sizeof **out);
    *count = 0;
    for (size_t i = 0; i < n; i++)
        if (names[i][0] != '.' && pm_is_folder(pm_arena_printf(a, "%s/%s", root, names[i])))
            (*out)[(*count)++] = names[i];
    if (*count == 0)
        return pm_fail(PM_EDATA,
                       "%s: it has no class folders; expected SRC/CLASS/FILE or "
                       "SRC/train/CLASS/FILE",
                       root);
    return PM_OK;
}

enum { MOST_LEVELS = 32 };

/* below: the folder's path below the first one, with a slash at the end; "" for the first. */
static int add_folder(struct pm_arena *a, const char *folder, const char *below, int level,
                      const struct pm_folder_chain *above, int label, struct pm_sources *out)
{
    struct pm_folder_chain own;
    char **names = NULL;
    size_t n = 0;
    int err = PM_OK;

    if (!pm_folder_enter(folder, above, &own) && above) {
        pm_sources_leave(out, folder, "a link to a folder that contains it");
        return PM_OK;
    }
    PM_TRY(pm_list_folder(a, folder, &names, &n));
    for (size_t i = 0; i < n; i++) {
        const char *path = pm_arena_printf(a, "%s/%s", folder, names[i]);
        const char *name = pm_arena_printf(a, "%s%s", below, names[i]);

        if (names[i][0] == '.')
            continue;
        if (pm_is_folder(path) && out->deep && level < MOST_LEVELS)
            PM_TRY(add_folder(a, path, pm_arena_printf(a, "%s/", name), level + 1, &own, label,
                              out));
        else if (pm_is_folder(path))
            pm_sources_leave(out, path, out->deep ? "too many folders inside each other"
                                                  : "a folder where files are expected");
        else if (pm_image_named(names[i]))
            pm_sources_add(out, path, name, label);
        else
            pm_sources_leave(out, path, "its name does not end like that of a picture");
    }
out:
    return err;
}

int pm_sources_folder(struct pm_arena *a, const char *folder, int label, struct pm_sources *out)
{
    return add_folder(a, folder, "", 1, NULL, label, out);
}

static int label_of(const char *name, const char *const *classes, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(classes[i], name))
            return i;
    return -1;
}

int pm_sources_classes(struct pm_arena *a, const char *root, const char *const *classes, int count,
                       int first, struct pm_sources *out)
{
    int err = PM_OK, own_count = 0;
    const char **own = NULL;
    const size_t had = out->count;

    PM_TRY(pm_class_folders(a, root, &own, &own_count));
    for (int k = 0; k < own_count; k++)
        if (label_of(own[k], classes, count) < 0)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s: class %s is not one of the %d classes of the training set", root,
                           own[k], count));
    for (int k = 0; k < count; k++) {
        const size_t before = out->count;
        const char *folder = pm_arena_printf(a, "%s/%s", root, classes[k]);
        if (pm_is_folder(folder))
            PM_TRY(pm_sources_folder(a, folder, first + k, out));
        if (out->count == before)
            PM_WARN("data", "%s: class %s has no pictures", root, classes[k]);
    }
    if (out->count == had)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: no picture files (" PM_IMAGE_ENDINGS ") in its %d class folders", root,
                       own_count));
    pm_sources_warn(out);
out:
    return err;
}

const char *pm_usual_file(struct pm_arena *a, const char *given, const char *src, const char *usual)
{
    const char *path = pm_arena_printf(a, "%s/%s", src, usual);
    return given ? given : pm_file_exists(path) ? path : NULL;
}

const char *pm_first_folder(struct pm_arena *a, const char *src, const char *const *names)
{
    for (; *names; names++) {
        const char *path = pm_arena_printf(a, "%s/%s", src, *names);
        if (pm_is_folder(path))
            return path;
    }
    return NULL;
}

int pm_file_lines(struct pm_arena *a, const char *path, char ***lines, size_t *count)
{
    char *text = NULL, *save = NULL;
    size_t capacity = 0;
    char **list = NULL;
    int err = PM_OK;

    *count = 0;
    PM_TRY(pm_text_read(path, PM_MOST_LIST, &text));
    for (char *line = text ? strtok_r(text, "\r\n", &save) : NULL; line;
         line = strtok_r(NULL, "\r\n", &save)) {
        PM_GROW(list, *count, capacity);
        list[(*count)++] = pm_arena_strdup(a, line);
    }
    *lines = pm_arena_alloc(a, (*count + 1) * sizeof **lines);
    if (*count)
        memcpy(*lines, list, *count * sizeof **lines);
out:
    pm_free(list);
    pm_free(text);
    return err;
}

int pm_class_list(struct pm_arena *a, const char *path, const char *root, const char ***out,
                  int *count)
{
    int err = PM_OK, n = 0;
    char **lines = NULL;
    const char **folders = NULL;
    size_t line_count = 0;

    if (!path) {
        PM_TRY(pm_class_folders(a, root, &folders, &n));
    } else {
        PM_TRY(pm_file_lines(a, path, &lines, &line_count));
        if (line_count == 0 || line_count > 1000000)
            PM_TRY(pm_fail(PM_EDATA, "%s: %zu class names; 1..1000000 are allowed", path,
                           line_count));
        n = (int)line_count;
    }
    *out = pm_arena_alloc(a, ((size_t)n + 1) * sizeof **out);
    (*out)[0] = "background";
    for (int i = 0; i < n; i++) {
        const char *name = folders ? folders[i] : lines[i];
        if (strchr(name, '/') || !strcmp(name, ".."))
            PM_TRY(
                pm_fail(PM_EDATA, "%s:%d: \"%s\" is not the name of a folder", path, i + 1, name));
        (*out)[i + 1] = name;
    }
    *count = n + 1;
out:
    return err;
}

/* ---- pictures ------------------------------------------------------------------------------- */

/* Number of components in the frame header of a JPEG that could be decoded. */
static int jpeg_components(const uint8_t *p, size_t size)
{
    for (size_t at = 2; at + 10 <= size;) {
        const uint8_t marker = p[at + 1];
        if (p[at] != 0xff || marker == 0xff) {
            at++;
            continue;
        }
        if ((marker >= 0xc0 && marker <= 0xc2) || marker == 0xc9 || marker == 0xca)
            return p[at + 9];
        at += 2;
        if (marker > 1 && !(marker >= 0xd0 && marker <= 0xd8))
            at += (size_t)p[at] << 8 | p[at + 1];
    }
    return 0;
}

/* A side after shrinking, at least 1 pixel. */
static int scaled_side(int length, int side, int longer)
{
    const int64_t scaled = ((int64_t)length * side + longer / 2) / longer;

    return scaled > 1 ? (int)scaled : 1;
}

static void replace(struct pm_picture *p, uint8_t *data, size_t size, const char *format)
{
    pm_free(p->data);
    p->data = (char *)data;
    p->size = size;
    p->format = format;
    p->four = false;
}

static bool is_one_of(const char *format, const char *const *list)
{
    while (*list && strcmp(format, *list) != 0)
        list++;
    return *list != NULL;
}

/* Formats that every reader of records supports. */
static const char *const common[] = { "jpeg", "png", "gif", "bmp", NULL };
/* Formats of photographs. As PNG these would be ten times as large. */
static const char *const photos[] = { "jpeg", "webp", "heic", "avif", NULL };

/* Encodes the upright pixels in a common format. */
static int encode_anew(struct pm_picture *p, const char *path)
{
    int err = PM_OK;
    const bool jpeg = is_one_of(p->format, photos) && p->image.channels % 2 == 1; /* no alpha */
    uint8_t *data = NULL;
    size_t size = 0;

    PM_DEBUG("data", "%s: format %s, EXIF orientation %d: stored upright as %s", path, p->format,
             p->orientation, jpeg ? "jpeg" : "png");
    if (jpeg)
        PM_TRY(pm_image_encode_jpeg(&p->image, 100, &data, &size));
    else
        PM_TRY(pm_image_encode_png(&p->image, &data, &size));
    replace(p, data, size, jpeg ? "jpeg" : "png");
out:
    return err;
}

int pm_picture_read(const char *path, struct pm_picture *out)
{
    char *bytes = NULL;
    size_t size = 0;
    const int err = pm_file_read(path, &bytes, &size);

    *out = (struct pm_picture){ 0 };
    return err < 0 ? err : pm_picture_take(path, bytes, size, out);
}

int pm_picture_take(const char *path, char *bytes, size_t size, struct pm_picture *out)
{
    int err = PM_OK;

    *out = (struct pm_picture){ .data = bytes, .size = size };
    PM_TRY(pm_image_decode(out->data, out->size, 0, 0, path, &out->image));
    out->format = pm_image_format(out->data, out->size);
    out->orientation = pm_image_orientation(out->data, out->size);
    out->four = !strcmp(out->format, "jpeg") &&
                jpeg_components((const uint8_t *)out->data, out->size) == 4;
    if (out->orientation != 1 || !is_one_of(out->format, common))
        PM_TRY(encode_anew(out, path));
out:
    return err;
}

int pm_picture_pixels(struct pm_picture *p, struct pm_image8 *pixels)
{
    const bool jpeg = !strcmp(p->format, "jpeg");
    uint8_t *data = NULL;
    size_t size = 0;
    int err = PM_OK;

    PM_TRY(jpeg ? pm_image_encode_jpeg(pixels, 95, &data, &size)
                : pm_image_encode_png(pixels, &data, &size));
    replace(p, data, size, jpeg ? "jpeg" : "png");
    pm_image_free(&p->image);
    p->image = *pixels;
    pixels->pixels = NULL;
out:
    return err;
}

int pm_picture_shrink(struct pm_picture *p, int side)
{
    const int height = p->image.height, width = p->image.width;
    const int longer = height > width ? height : width, channels = p->image.channels;
    int err = PM_OK;
    float *values = NULL;
    struct pm_image8 small = { 0 };

    if (longer <= side)
        return PM_OK;
    small = (struct pm_image8){ scaled_side(height, side, longer), scaled_side(width, side, longer),
                                channels, NULL };
    const size_t count = (size_t)small.height * (size_t)small.width * (size_t)channels;
    values = pm_malloc(count * sizeof *values);
    small.pixels = pm_malloc(count);
    pm_resize_antialias(pm_view8_of(&p->image), small.height, small.width, 0, 0, small.height,
                        small.width, values);
    for (size_t i = 0; i < count; i++)
        small.pixels[i] = (uint8_t)(values[i] + 0.5f);
    PM_TRY(pm_picture_pixels(p, &small));
out:
    pm_image_free(&small);
    pm_free(values);
    return err;
}

int pm_picture_crop(const struct pm_picture *from, int y, int x, int height, int width,
                    struct pm_picture *out)
{
    const size_t channels = (size_t)from->image.channels, row = (size_t)width * channels;
    struct pm_image8 part = { height, width, from->image.channels, NULL };

    *out = (struct pm_picture){ .orientation = from->orientation, .format = from->format };
    part.pixels = pm_malloc((size_t)height * row);
    for (int i = 0; i < height; i++) {
        const size_t at = (size_t)(y + i) * (size_t)from->image.width + (size_t)x;

        memcpy(part.pixels + (size_t)i * row, from->image.pixels + at * channels, row);
    }
    const int err = pm_picture_pixels(out, &part);
    pm_image_free(&part);
    return err;
}

int pm_picture_to_jpeg(struct pm_picture *p)
{
    int err = PM_OK;
    struct pm_image8 rgb = { 0 };
    uint8_t *jpeg = NULL;

    if (!strcmp(p->format, "jpeg") && !p->four)
        return PM_OK;
    PM_TRY(pm_image_decode(p->data, p->size, 3, 0, "a decoded picture", &rgb));
    size_t size = 0;
    PM_TRY(pm_image_encode_jpeg(&rgb, 100, &jpeg, &size));
    replace(p, jpeg, size, "jpeg");
out:
    pm_image_free(&rgb);
    return err;
}

void pm_picture_free(struct pm_picture *p)
{
    pm_image_free(&p->image);
    pm_free(p->data);
    p->data = NULL;
}

int pm_picture_failed(int err, int bad)
{
    return err == PM_EDATA && bad == PM_BAD_SKIP ? 0 : err;
}

void pm_add_text(struct pm_example_builder *b, const char *key, const char *text)
{
    pm_example_add_bytes(b, key, text, strlen(text));
}

void pm_picture_add(struct pm_example_builder *b, const struct pm_picture *p, const char *format,
                    int64_t label)
{
    const int64_t height = p->image.height, width = p->image.width;

    pm_example_add_bytes(b, "image/encoded", p->data, p->size);
    pm_add_text(b, "image/format", format);
    pm_example_add_ints(b, "image/class/label", &label, 1);
    pm_example_add_ints(b, "image/height", &height, 1);
    pm_example_add_ints(b, "image/width", &width, 1);
}
