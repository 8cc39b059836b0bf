/* valid_rows: the rows of an image that count, if an example has crops and only its first ones are
 * valid. The image is [examples][crops][crop_rows][channels]: an example has `crops` crops, a crop
 * `crop_rows` rows. count[i] crops of example i are valid; less than 0 means none, more than
 * `crops` all. The rest is padding. shaders/lib/valid_rows.glsl is the twin. */
#ifndef PM_VALID_ROWS_H
#define PM_VALID_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pm_valid_rows {
    const int32_t *count; /* [examples] */
    int crops, crop_rows;
};
/* Rows first to end - 1 of the image. */
struct pm_row_span { size_t first, end; };

/* Returns the rows of an example that count. They are its first ones. */
static inline size_t pm_valid_of(const struct pm_valid_rows *v, size_t example)
{
    const int32_t n = v->count[example];

    return (size_t)(n < 0 ? 0 : n > v->crops ? v->crops : n) * (size_t)v->crop_rows;
}

/* Returns the rows of the image that count. */
static inline size_t pm_valid_total(const struct pm_valid_rows *v, int examples)
{
    size_t total = 0;

    for (int i = 0; i < examples; i++)
        total += pm_valid_of(v, (size_t)i);
    return total;
}

/* Splits an image into runs of rows that all count (*valid) or all do not. Returns the end, at most
 * `end`, of the run that begins at `row`. */
static inline size_t pm_valid_run(const struct pm_valid_rows *v, size_t row, size_t end,
                                  bool *valid)
{
    const size_t size = (size_t)v->crops * (size_t)v->crop_rows, example = row / size;
    const size_t padding = example * size + pm_valid_of(v, example);
    const size_t last = row < padding ? padding : (example + 1) * size;

    *valid = row < padding;
    return last < end ? last : end;
}

/* Chunks of at most `length` rows. No chunk holds rows of two examples. */
static inline int pm_valid_chunks(int crops, int crop_rows, int length)
{
    return (crops * crop_rows + length - 1) / length; /* of one example */
}

/* Returns the rows of a chunk that count; they are its first ones. Without any, first == end. */
static inline struct pm_row_span pm_valid_chunk(const struct pm_valid_rows *v, size_t chunk,
                                                int length)
{
    const size_t per = (size_t)pm_valid_chunks(v->crops, v->crop_rows, length);
    const size_t example = chunk / per, from = chunk % per * (size_t)length;
    const size_t start = example * (size_t)v->crops * (size_t)v->crop_rows;
    const size_t valid = pm_valid_of(v, example), left = valid > from ? valid - from : 0;

    return (struct pm_row_span){
        start + from, start + from + (left < (size_t)length ? left : (size_t)length) };
}

#endif
