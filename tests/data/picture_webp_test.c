/* WebP: lossless files equal their pixels; alpha, EXIF data and animations. */
#include "exif_common.h"
#include "picture_made.h"

#include <webp/encode.h>
#include <webp/mux.h>

static struct made encoded(const struct pm_image8 *im)
{
    struct made m = { 0 };
    uint8_t *data = NULL;
    const int row = im->width * im->channels;
    const size_t size = (im->channels == 4 ? WebPEncodeLosslessRGBA : WebPEncodeLosslessRGB)(
        im->pixels, im->width, im->height, row, &data);

    assert_true(size > 0);
    made_add(&m, data, size);
    WebPFree(data);
    return m;
}

/* WebPEncodeLossless may change the colours under alpha 0, so alpha is at least 1. */
static struct pm_image8 image(int height, int width, int channels)
{
    struct pm_image8 im = made_image(height, width, channels);

    for (int i = 3; channels == 4 && i < height * width * 4; i += 4)
        im.pixels[i] |= 1;
    return im;
}

static void stills(void **state)
{
    (void)state;
    for (int channels = 3; channels <= 4; channels++) {
        struct pm_image8 im = image(19, 33, channels);
        struct made m = encoded(&im);

        made_expect(&m, "webp", &im);
        made_cut(&m);
        made_damage(&m);
        made_limit(&m);
        pm_free(m.data);
        pm_image_free(&im);
    }
    assert_true(pm_image_named("a.webp") && pm_image_named("A.WEBP"));
}

/* With EXIF data, with and without the six bytes that some programs write before them. */
static void turned(void **state)
{
    (void)state;
    for (int prefix = 0; prefix < 2; prefix++) {
        struct pm_image8 im = image(2, 3, 3), want = { 3, 2, 3, pm_malloc(18) };
        struct made m = encoded(&im);
        uint8_t body[6 + EXIF_SIZE] = "Exif\0";
        WebPData file = { m.data, m.size }, exif = { body, EXIF_SIZE }, out;

        exif_body(true, 6, body + (prefix ? 6 : 0));
        exif.size += prefix ? 6 : 0;
        for (int y = 0; y < 3; y++) /* 6: the stored left column, from below, is the top row */
            for (int x = 0; x < 2; x++)
                memcpy(want.pixels + (y * 2 + x) * 3, im.pixels + ((1 - x) * 3 + y) * 3, 3);
        WebPMux *mux = WebPMuxCreate(&file, 1);
        assert_int_equal(WebPMuxSetChunk(mux, "EXIF", &exif, 1), WEBP_MUX_OK);
        assert_int_equal(WebPMuxAssemble(mux, &out), WEBP_MUX_OK);
        struct made with = { 0 };
        made_add(&with, out.bytes, out.size);
        assert_int_equal(pm_image_orientation(with.data, with.size), 6);
        made_expect(&with, "webp", &want);
        WebPDataClear(&out);
        WebPMuxDelete(mux);
        pm_free(with.data);
        pm_free(m.data);
        pm_image_free(&im);
        pm_image_free(&want);
    }
}

/* Of two pictures the first is read; it covers the canvas. */
static void animation(void **state)
{
    struct pm_image8 im = image(20, 30, 4), other = image(20, 30, 4);
    WebPAnimEncoderOptions options;
    WebPConfig config;
    WebPData out;
    struct made m = { 0 };

    (void)state;
    for (int i = 0; i < 20 * 30; i++) { /* opaque: otherwise the canvas shows through */
        im.pixels[4 * i + 3] = other.pixels[4 * i + 3] = 255;
        other.pixels[4 * i] ^= 255;
    }
    assert_true(WebPAnimEncoderOptionsInit(&options) && WebPConfigInit(&config));
    config.lossless = 1;
    WebPAnimEncoder *encoder = WebPAnimEncoderNew(30, 20, &options);
    for (int k = 0; k < 2; k++) {
        WebPPicture p;
        assert_true(WebPPictureInit(&p));
        p.use_argb = 1, p.width = 30, p.height = 20;
        assert_true(WebPPictureImportRGBA(&p, k ? other.pixels : im.pixels, 4 * 30));
        assert_true(WebPAnimEncoderAdd(encoder, &p, 100 * k, &config));
        WebPPictureFree(&p);
    }
    assert_true(WebPAnimEncoderAdd(encoder, NULL, 200, NULL));
    assert_true(WebPAnimEncoderAssemble(encoder, &out));
    made_add(&m, out.bytes, out.size);
    made_expect(&m, "webp", &im);
    made_damage(&m);
    made_limit(&m);
    WebPDataClear(&out);
    WebPAnimEncoderDelete(encoder);
    pm_free(m.data);
    pm_image_free(&im);
    pm_image_free(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stills),
        cmocka_unit_test(turned),
        cmocka_unit_test(animation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
