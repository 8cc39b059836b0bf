/* HEIC and AVIF, encoded by libheif without loss after its conversion to Y, Cb and Cr. Each of the
 * three and each colour computed from them is rounded, so a colour differs by at most
 * 0.5 (1 + 1.772) + 0.5 = 1.9 (blue), that is by 1. Grey has no such error in Y. */
#include "picture_made.h"

#include <libheif/heif.h>

static struct heif_error add(struct heif_context *c, const void *data, size_t size, void *user)
{
    (void)c;
    made_add(user, data, size);
    return (struct heif_error){ heif_error_Ok, heif_suberror_Unspecified, "" };
}

static void check(struct heif_error e)
{
    if (e.code != heif_error_Ok)
        fail_msg("%s", e.message);
}

static struct heif_image *image_of(const struct pm_image8 *im)
{
    struct heif_image *out;
    int stride;

    check(heif_image_create(im->width, im->height, heif_colorspace_RGB,
                            heif_chroma_interleaved_RGB, &out));
    check(heif_image_add_plane(out, heif_channel_interleaved, im->width, im->height, 24));
    uint8_t *to = heif_image_get_plane(out, heif_channel_interleaved, &stride);
    for (int y = 0; y < im->height; y++)
        memcpy(to + y * stride, im->pixels + y * im->width * 3, (size_t)im->width * 3);
    return out;
}

/* Returns an empty file if libheif has no encoder for the format. */
static struct made encoded(enum heif_compression_format format, const struct pm_image8 *im,
                           enum heif_orientation orientation)
{
    struct heif_context *c = heif_context_alloc();
    struct heif_encoding_options *options = heif_encoding_options_alloc();
    struct heif_color_profile_nclx *nclx = heif_nclx_color_profile_alloc();
    struct heif_image *image = image_of(im);
    struct heif_encoder *encoder = NULL;
    struct made m = { 0 };

    if (heif_context_get_encoder_for_format(c, format, &encoder).code == heif_error_Ok) {
        struct heif_writer writer = { 1, add };
        heif_encoder_set_lossless(encoder, 1);
        check(heif_encoder_set_parameter_string(encoder, "chroma", "444"));
        nclx->matrix_coefficients = heif_matrix_coefficients_ITU_R_BT_601_6;
        nclx->full_range_flag = 1;
        options->output_nclx_profile = nclx;
        options->image_orientation = orientation;
        check(heif_context_encode_image(c, image, encoder, options, NULL));
        check(heif_context_write(c, &writer, &m));
        heif_encoder_release(encoder);
    }
    heif_image_release(image);
    heif_nclx_color_profile_free(nclx);
    heif_encoding_options_free(options);
    heif_context_free(c);
    return m;
}

static void one(enum heif_compression_format format, const char *name)
{
    struct pm_image8 im = made_image(72, 96, 3), want = { 96, 72, 3, pm_malloc(72 * 96 * 3) };
    struct made m = encoded(format, &im, heif_orientation_normal);

    if (!m.size) {
        print_message("skipped: this libheif has no encoder for %s\n", name);
        skip();
    }
    made_near(&m, name, &im, 1);
    made_damage(&m);
    made_limit(&m);
    made_cut(&m);
    pm_free(m.data);
    /* The top row is the stored left column, from below. */
    m = encoded(format, &im, heif_orientation_rotate_90_cw);
    for (int y = 0; y < 96; y++)
        for (int x = 0; x < 72; x++)
            memcpy(want.pixels + (y * 72 + x) * 3, im.pixels + ((71 - x) * 96 + y) * 3, 3);
    made_near(&m, name, &want, 1);
    pm_free(m.data);
    pm_image_free(&im);
    pm_image_free(&want);
}

static void heic(void **state)
{
    (void)state;
    one(heif_compression_HEVC, "heic");
    assert_true(pm_image_named("IMG_0001.HEIC") && pm_image_named("a.heif"));
}

static void avif(void **state)
{
    (void)state;
    one(heif_compression_AV1, "avif");
    assert_true(pm_image_named("a.avif"));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(heic), cmocka_unit_test(avif) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
