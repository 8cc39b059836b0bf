/* JPEG through libjpeg-turbo, with the settings of TensorFlow's decode_jpeg: accurate integer DCT,
 * smooth upsampling of chroma, and its formula for CMYK. The pixels equal TensorFlow's.
 *
 * After damage, libjpeg continues with a warning and invents the missing pixels. Here the file is
 * refused if a warning means lost pixels. Other warnings are ignored. */
#ifdef PUMICE_TURBO
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "data/picture.h"

/* Limit on progressive scans. A file of a few kilobytes may hold thousands of scans, each over all
 * pixels. Encoders write about ten. libjpeg-turbo's manual recommends such a limit. */
enum { MAX_SCANS = 100 };

struct reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    const struct pm_picture_file *file;
    uint8_t *pixels; /* owned */
};

static struct reader *reader_of(j_common_ptr c)
{
    return c->client_data;
}

static bool is_unsupported(int code)
{
    return code == JERR_SOF_UNSUPPORTED || code == JERR_BAD_PRECISION ||
           code == JERR_CONVERSION_NOTIMPL || code == JERR_ARITH_NOTIMPL ||
           code == JERR_COMPONENT_COUNT || code == JERR_FRACT_SAMPLE_NOTIMPL ||
           code == JERR_CCIR601_NOTIMPL || code == JERR_NOT_COMPILED ||
           code == JERR_IMAGE_TOO_BIG; /* one side is longer than libjpeg allows */
}

static _Noreturn void give_up(j_common_ptr c)
{
    struct reader *r = reader_of(c);
    char text[JMSG_LENGTH_MAX];
    const int code = c->err->msg_code;

    c->err->format_message(c, text);
    if ((code == JERR_EMPTY_IMAGE || code == JERR_IMAGE_TOO_BIG) &&
        pm_picture_size(r->file, r->jpeg.image_width, r->jpeg.image_height) < 0)
        longjmp(r->jump, 1);
    if (code == JERR_OUT_OF_MEMORY)
        pm_picture_no_memory(r->file, r->jpeg.image_width, r->jpeg.image_height);
    else if (is_unsupported(code))
        pm_picture_unsupported(r->file, text);
    else
        pm_picture_damaged(r->file, text);
    longjmp(r->jump, 1);
}

/* Receives libjpeg's messages. level -1: a warning; otherwise a trace. */
static void hear(j_common_ptr c, int level)
{
    switch (level < 0 ? c->err->msg_code : 0) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
#ifdef D_ARITH_CODING_SUPPORTED /* without it, the header lacks the error's name */
    case JWRN_ARITH_BAD_CODE:
#endif
    case JWRN_MUST_RESYNC:
    case JWRN_JPEG_EOF:
        give_up(c);
    default:
        break;
    }
}

/* ---- source -------------------------------------------------------------------------------- */

static void nothing(j_decompress_ptr d)
{
    (void)d;
}

static boolean past_the_end(j_decompress_ptr d)
{
    struct reader *r = reader_of((j_common_ptr)d);

    pm_fail(PM_EDATA,
            "%s: the JPEG is cut short: %zu bytes without an end marker. Fetch or export it "
            "again, or remove it",
            r->file->where, r->file->size);
    longjmp(r->jump, 1);
}

static void skip(j_decompress_ptr d, long count)
{
    if (count > 0 && (size_t)count > d->src->bytes_in_buffer)
        past_the_end(d);
    if (count > 0) {
        d->src->next_input_byte += count;
        d->src->bytes_in_buffer -= (size_t)count;
    }
}

static void count_scans(j_common_ptr c)
{
    struct reader *r = reader_of(c);

    if (r->jpeg.input_scan_number <= MAX_SCANS)
        return;
    pm_fail(PM_EDATA,
            "%s: the JPEG has more than %d scans, which would take very long to decode. Save "
            "it again with an ordinary encoder, or remove it",
            r->file->where, MAX_SCANS);
    longjmp(r->jump, 1);
}

/* ---- pixels -------------------------------------------------------------------------------- */

static void choose_colors(struct reader *r)
{
    struct jpeg_decompress_struct *d = &r->jpeg;

    if (d->jpeg_color_space == JCS_CMYK || d->jpeg_color_space == JCS_YCCK)
        d->out_color_space = JCS_CMYK;
    else if (d->num_components == 1 || r->file->grey)
        d->out_color_space = JCS_GRAYSCALE;
    else
        d->out_color_space = JCS_RGB;
    d->dct_method = JDCT_ISLOW;
    d->do_fancy_upsampling = TRUE;
    d->scale_num = 1;
    d->scale_denom = r->file->shrink > 1 ? (unsigned)r->file->shrink : 1;
}

/* Adobe's programs store CMYK inverted. */
static void cmyk_to_rgb(const uint8_t *in, bool inverted, uint8_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++, in += 4, out += 3)
        for (int c = 0; c < 3; c++)
            out[c] = (uint8_t)(inverted ? in[3] * in[c] / 255
                                        : (255 - in[3]) * (255 - in[c]) / 255);
}

static void read_rows(struct reader *r, size_t row_size)
{
    struct jpeg_decompress_struct *d = &r->jpeg;
    const bool four = d->out_color_space == JCS_CMYK;
    JSAMPARRAY inks = four ? d->mem->alloc_sarray((j_common_ptr)d, JPOOL_IMAGE,
                                                  d->output_width * 4, 1) : NULL;

    while (d->output_scanline < d->output_height) {
        uint8_t *to = r->pixels + d->output_scanline * row_size;

        jpeg_read_scanlines(d, four ? inks : &to, 1);
        if (four)
            cmyk_to_rgb(inks[0], d->saw_Adobe_marker, to, d->output_width);
    }
}

static int decode(struct reader *r, struct pm_image8 *out)
{
    struct jpeg_decompress_struct *d = &r->jpeg;

    if (setjmp(r->jump))
        return PM_EDATA;
    jpeg_create_decompress(d);
    d->src = &r->source;
    d->progress = &r->progress;
    jpeg_read_header(d, TRUE);
    if (pm_picture_size(r->file, d->image_width, d->image_height) < 0)
        return PM_EDATA;
    choose_colors(r);
    jpeg_start_decompress(d);
    const int channels = d->out_color_space == JCS_GRAYSCALE ? 1 : 3;
    const size_t row_size = (size_t)d->output_width * (size_t)channels;
    r->pixels = pm_try_realloc(NULL, d->output_height * row_size);
    if (!r->pixels)
        return pm_picture_no_memory(r->file, d->image_width, d->image_height);
    read_rows(r, row_size);
    jpeg_finish_decompress(d);
    *out = (struct pm_image8){ (int)d->output_height, (int)d->output_width, channels, r->pixels };
    r->pixels = NULL;
    return PM_OK;
}

int pm_picture_jpeg(const struct pm_picture_file *f, struct pm_image8 *out)
{
    struct reader *r = pm_calloc(1, sizeof *r);

    r->file = f;
    r->jpeg.client_data = r;
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = give_up;
    r->errors.emit_message = hear;
    r->source = (struct jpeg_source_mgr){
        .next_input_byte = f->data, .bytes_in_buffer = f->size, .init_source = nothing,
        .fill_input_buffer = past_the_end, .skip_input_data = skip,
        .resync_to_restart = jpeg_resync_to_restart, .term_source = nothing,
    };
    r->progress.progress_monitor = count_scans;
    const int err = decode(r, out);
    jpeg_destroy_decompress(&r->jpeg);
    pm_free(r->pixels);
    pm_free(r);
    return err;
}
#else
#include "data/picture.h"

int pm_picture_jpeg(const struct pm_picture_file *f, struct pm_image8 *out)
{
    return pm_picture_jpeg_stb(f, out);
}
#endif
