/* Pictures that a format's own library encodes for the tests, without loss. */
#ifndef PUMICE_TESTS_PICTURE_MADE_H
#define PUMICE_TESTS_PICTURE_MADE_H

#include "picture_common.h"

#include <stdlib.h>

struct made {
    uint8_t *data; /* owned; pm_free */
    size_t size;
};

static inline void made_add(struct made *m, const void *bytes, size_t count)
{
    m->data = pm_realloc(m->data, m->size + count);
    memcpy(m->data + m->size, bytes, count);
    m->size += count;
}

/* A picture with different pixels everywhere; pm_image_free. */
static inline struct pm_image8 made_image(int height, int width, int channels)
{
    const size_t count = (size_t)(height * width * channels);
    struct pm_image8 im = { height, width, channels, pm_malloc(count) };
    struct pm_rng r = pm_rng_make(7, pm_hash("made"), 0, 0);

    for (size_t i = 0; i < count; i++)
        im.pixels[i] = (uint8_t)pm_rng_int(&r, 0, 255);
    return im;
}

/* Decodes the file and compares the measured size, the format's name, and all pixels, which may
 * differ by `most`. */
static inline void made_near(const struct made *m, const char *format,
                             const struct pm_image8 *want, int most)
{
    struct pm_image8 got;
    int height = 0, width = 0;

    if (pm_image_decode(m->data, m->size, 0, 0, "made", &got) < 0)
        fail_msg("%s", pm_error_text());
    assert_string_equal(pm_image_format(m->data, m->size), format);
    assert_int_equal(got.height, want->height);
    assert_int_equal(got.width, want->width);
    assert_int_equal(got.channels, want->channels);
    for (int i = 0; i < want->height * want->width * want->channels; i++)
        if (abs(got.pixels[i] - want->pixels[i]) > most)
            fail_msg("sample %d is %d, expected %d", i, got.pixels[i], want->pixels[i]);
    assert_int_equal(pm_image_measure(m->data, m->size, 0, "made", &height, &width), PM_OK);
    assert_int_equal(height, want->height);
    assert_int_equal(width, want->width);
    pm_image_free(&got);
}

static inline void made_expect(const struct made *m, const char *format,
                               const struct pm_image8 *want)
{
    made_near(m, format, want, 0);
}

/* Every beginning of the file is refused, with a message. */
static inline void made_cut(const struct made *m)
{
    for (size_t n = 0; n < m->size; n += n < 64 || m->size - n < 64 ? 1 : 13) {
        uint8_t *copy = pm_malloc(n + 1); /* exact size, so that the sanitizer detects a read
                                           * beyond the end */
        memcpy(copy, m->data, n);
        if (decoded(copy, n, 0, "cut") != PM_EDATA)
            fail_msg("%zu of %zu bytes are accepted", n, m->size);
        pm_free(copy);
    }
}

/* With single bytes changed the file is decoded or refused. */
static inline void made_damage(const struct made *m)
{
    struct pm_rng r = pm_rng_make(1, pm_hash("damage"), 0, 0);

    for (int i = 0; i < 400; i++) {
        uint8_t *copy = pm_malloc(m->size);
        memcpy(copy, m->data, m->size);
        copy[pm_rng_int(&r, 0, (int)m->size - 1)] ^= (uint8_t)pm_rng_int(&r, 1, 255);
        decoded(copy, m->size, 3, "damaged");
        pm_free(copy);
    }
}

/* The size limit is checked before the pixels are decoded. */
static inline void made_limit(const struct made *m)
{
    struct pm_image8 im;

    assert_fails(pm_image_decode(m->data, m->size, 3, 4, "large", &im), PM_EDATA, "large: ",
                 "1..4 pixels in all are allowed");
}

#endif
