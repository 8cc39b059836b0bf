/* tile_pictures: photos made of pictures side by side, and their predictions in tiles. */
#ifndef TILE_PICTURES_H
#define TILE_PICTURES_H

#include "e2e/learnt.h"

/* Writes the file `path`: pictures of side x side pixels in rows of `columns`, of the files
 * file[count]. */
static inline void join_pictures(const char *path, const char *const *file, int count, int columns,
                                 int side)
{
    const int rows = count / columns;
    const size_t bytes = 3 * (size_t)side;
    struct pm_image8 all = { rows * side, columns * side, 3, NULL };
    uint8_t *png;
    size_t size;

    all.pixels = pm_calloc((size_t)count * bytes, (size_t)side);
    for (int k = 0; k < count; k++) {
        struct pm_image8 one = read_picture(file[k]);
        const size_t y0 = (size_t)(k / columns * side), x0 = (size_t)(k % columns);

        assert_true(one.height == side && one.width == side);
        for (size_t y = 0; y < (size_t)side; y++)
            memcpy(all.pixels + ((y0 + y) * (size_t)columns + x0) * bytes, one.pixels + y * bytes,
                   bytes);
        pm_image_free(&one);
    }
    assert_int_equal(pm_image_encode_png(&all, &png, &size), PM_OK);
    assert_int_equal(pm_file_write(path, png, size), PM_OK);
    pm_free(png);
    pm_image_free(&all);
}

/* Predicts a file with FOLDER/NAME and further options. Returns its object in the printed JSON. The
 * caller frees it. */
static inline cJSON *predict_file(const char *name, const char *path, const char *more)
{
    struct result r = run(NULL, "predict %s run.folder=%s %s --json %s", in("net.json"),
                          in("%s", name), path, more);
    cJSON *report = json_of(&r);
    cJSON *image = cJSON_DetachItemFromArray(cJSON_GetObjectItem(report, "images"), 0);

    assert_non_null(image);
    cJSON_Delete(report);
    check(r, 0);
    return image;
}

/* Predicts the first training picture with FOLDER/learns, and a photo that has it twice side by
 * side, in two tiles. The tiles have the picture's pixels, so rows 2 i and 2 i + 1 of the pair must
 * be row i of the one, x = 0 or `side` pixels to the right. Calls same(one, pair, x) for each row
 * of the pair. predict_learnt() was called before. */
static inline void compare_pair(int side, void (*same)(const cJSON *one, const cJSON *pair, int x))
{
    const char *const twice[] = { in("pictures/" LEARNT_PICTURE), in("pictures/" LEARNT_PICTURE) };
    char tile[64];
    cJSON *one, *pair, *ones, *pairs;

    snprintf(tile, sizeof tile, "predict.tile=%d predict.overlap=0", side);
    join_pictures(in("pair.png"), twice, 2, 2, side);
    one = predict_file("learns", twice[0], "");
    pair = predict_file("learns", in("pair.png"), tile);
    ones = cJSON_GetObjectItem(one, "boxes");
    pairs = cJSON_GetObjectItem(pair, "boxes");
    assert_true(number_of(pair, "tiles") == 2);
    assert_true(cJSON_GetArraySize(ones) > 0 && cJSON_GetArraySize(pairs) > 1);
    for (int k = 0; k < cJSON_GetArraySize(pairs); k++) {
        const cJSON *a = cJSON_GetArrayItem(ones, k / 2), *b = cJSON_GetArrayItem(pairs, k);

        assert_true(number_of(a, "score") == number_of(b, "score"));
        for (int i = 0; i < 4; i++)
            assert_float_equal(cJSON_GetArrayItem(cJSON_GetObjectItem(b, "box"), i)->valuedouble,
                               cJSON_GetArrayItem(cJSON_GetObjectItem(a, "box"), i)->valuedouble +
                                   (i % 2 ? k % 2 * side : 0), 1e-9);
        same(a, b, k % 2 * side);
    }
    cJSON_Delete(one);
    cJSON_Delete(pair);
}

#endif
