/* COCO's masks. The first byte selects the kind; the next two are height and width, from 1. The
 * rest is a compressed text, runs of 16 bits, or corners of 16 bits each. For a mask that is
 * read, the runs add up to the pixels, its text reads as the same mask, and its union and its
 * overlap with itself are those of the same mask. */
#include "data/coco_mask.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_text(const uint8_t *data, size_t size, int height, int width, struct pm_runs *m)
{
    char *text = pm_malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    const int err = pm_runs_text(text, height, width, "fuzz", m);
    pm_free(text);
    return err;
}

static int read_numbers(const uint8_t *data, size_t size, int height, int width, bool corners,
                        struct pm_runs *m)
{
    const size_t count = size / 2;
    uint32_t *runs = pm_malloc((count + 1) * sizeof *runs);
    int32_t *xy = pm_malloc((count + 1) * sizeof *xy);

    for (size_t i = 0; i < count; i++) {
        runs[i] = (uint32_t)(data[2 * i] | data[2 * i + 1] << 8);
        xy[i] = (int16_t)runs[i];
    }
    const int err = corners ? pm_runs_polygon(xy, count / 2, height, width, "fuzz", m)
                            : pm_runs_counts(runs, count, height, width, "fuzz", m);
    pm_free(xy);
    pm_free(runs);
    return err;
}

static void check(struct pm_runs *m)
{
    const size_t pixels = (size_t)m->height * (size_t)m->width;
    uint8_t *out = pm_malloc(pixels);
    struct pm_str text = { 0 };
    struct pm_runs again;
    uint64_t area = 0;
    uint32_t box[4];

    pm_runs_decode(m, out);
    for (size_t i = 0; i < pixels; i++)
        area += out[i];
    pm_runs_box(m, box);
    if (area != pm_runs_area(m) || box[0] + box[2] > (uint32_t)m->width ||
        box[1] + box[3] > (uint32_t)m->height || (area > 0) != (box[2] > 0))
        __builtin_trap();
    pm_runs_print(m, &text);
    if (pm_runs_text(text.text ? text.text : "", m->height, m->width, "own", &again) < 0 ||
        again.count != m->count || memcmp(again.run, m->run, m->count * sizeof *m->run) != 0)
        __builtin_trap();
    if (pm_runs_overlap(m, &again, false) != (area > 0) ||
        pm_runs_overlap(m, &again, true) != (area > 0))
        __builtin_trap();
    pm_runs_unite(m, &again);
    if (pm_runs_area(m) != area)
        __builtin_trap();
    pm_runs_free(&again);
    pm_str_free(&text);
    pm_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pm_runs m = { 0 };
    int err;

    if (size < 3)
        return 0;
    const int height = 1 + data[1], width = 1 + data[2];
    if (data[0] % 3 == 0)
        err = read_text(data + 3, size - 3, height, width, &m);
    else
        err = read_numbers(data + 3, size - 3, height, width, data[0] % 3 == 1, &m);
    if (err == PM_OK)
        check(&m);
    pm_runs_free(&m);
    return 0;
}
