/* word_picture: word_picture.h has the contract. */
#include "data/make/word_picture.h"

#include <math.h>
#include <string.h>

#include "data/make/ground.h"
#include "data/projection.h"

/* ---- ink ---------------------------------------------------------------------------------- */

/* The rows and columns that letters cover, relative to the pen's first place on the base line. */
struct extent {
    int top, bottom, left, right; /* bottom and right are exclusive */
};

static struct extent measure(struct pm_font *font, const uint32_t *text, int count)
{
    struct extent e = { INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN };
    int pen = 0;

    for (int i = 0; i < count; i++) {
        struct pm_letter l;

        pm_font_letter(font, text[i], true, &l);
        if (l.coverage && l.rows > 0 && l.width > 0) {
            e.top = -l.top < e.top ? -l.top : e.top;
            e.bottom = l.rows - l.top > e.bottom ? l.rows - l.top : e.bottom;
            e.left = pen + l.left < e.left ? pen + l.left : e.left;
            e.right = pen + l.left + l.width > e.right ? pen + l.left + l.width : e.right;
        }
        pen += l.advance;
    }
    return e;
}

static void put_letter(const struct pm_letter *l, int y, int x, struct pm_word_ink *out)
{
    for (int row = 0; row < l->rows && l->coverage; row++)
        for (int k = 0; k < l->width; k++) {
            uint8_t *p = out->pixels + (size_t)(y + row) * (size_t)out->width + x + k;
            const uint8_t c = l->coverage[row * l->stride + k];

            *p = c > *p ? c : *p; /* letters of slanted fonts overlap */
        }
}

bool pm_word_ink(struct pm_font *font, double size, const uint32_t *text, int count,
                 struct pm_word_ink *out)
{
    const int least = (int)(0.5 * size); /* rows above the base line of a letter such as x */
    struct extent e;
    int pen = 0;

    for (int i = 0; i < count; i++)
        if (!pm_font_has(font, text[i]))
            return false;
    if (!pm_font_scale(font, size))
        return false;
    e = measure(font, text, count);
    if (e.right <= e.left)
        return false;
    e.top = e.top > -least ? -least : e.top;
    e.bottom = e.bottom < 0 ? 0 : e.bottom;
    *out = (struct pm_word_ink){ e.bottom - e.top, e.right - e.left, NULL };
    out->pixels = pm_calloc((size_t)out->height * (size_t)out->width, 1);
    for (int i = 0; i < count; i++) {
        struct pm_letter l;

        pm_font_letter(font, text[i], true, &l);
        put_letter(&l, -l.top - e.top, pen + l.left - e.left, out);
        pen += l.advance;
    }
    return true;
}

/* ---- place -------------------------------------------------------------------------------- */

/* Where the picture's corners are in the ink, and the picture's width over its height. All of the
 * ink is inside: each corner moves outward only. */
static struct pm_projection place(struct pm_rng *r, const struct pm_word_ink *ink, float *aspect)
{
    const float h = (float)ink->height, w = (float)ink->width;
    const float slant = pm_draw_uniform(r, -0.3f, 0.3f) * h;
    float u[4] = { 0, w, w, 0 }, v[4] = { 0, 0, h, h };

    for (int i = 0; i < 4; i++) {
        const float sideways = i == 1 || i == 2 ? 1 : -1, down = i >= 2 ? 1 : -1;
        /* The picture leans, so the word in it leans the other way. */
        const float lean = (i < 2 ? slant : -slant) / 2;

        u[i] += lean + sideways * (fabsf(slant) / 2 + pm_draw_uniform(r, 0.02f, 0.3f) * h);
        v[i] += down * pm_draw_uniform(r, 0.02f, 0.25f) * h;
    }
    *aspect = (u[1] - u[0] + u[2] - u[3]) / (v[3] - v[0] + v[2] - v[1]);
    return pm_projection_to(u, v);
}

/* Coverage of the ink at a point, 0..1, interpolated; 0 outside. */
static float sample(const struct pm_word_ink *ink, float u, float v)
{
    const float fu = floorf(u - 0.5f), fv = floorf(v - 0.5f);
    const float a = u - 0.5f - fu, b = v - 0.5f - fv;
    float sum = 0;

    if (!(fu >= -1 && fu < (float)ink->width && fv >= -1 && fv < (float)ink->height))
        return 0;
    for (int k = 0; k < 4; k++) {
        const int x = (int)fu + (k & 1), y = (int)fv + (k >> 1);

        if (x >= 0 && x < ink->width && y >= 0 && y < ink->height)
            sum += (k & 1 ? a : 1 - a) * (k >> 1 ? b : 1 - b) *
                   (float)ink->pixels[(size_t)y * (size_t)ink->width + (size_t)x];
    }
    return sum / 255;
}

/* Writes coverage [height][width]: each pixel is the mean of 3x3 points. */
static void project(const struct pm_projection *p, const struct pm_word_ink *ink, int height,
                    int width, float *out)
{
    enum { POINTS = 3 };

    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            float sum = 0;

            for (int k = 0; k < POINTS * POINTS; k++) {
                const float fx = ((float)x + ((float)(k % POINTS) + 0.5f) / POINTS) / (float)width;
                const float fy =
                    ((float)y + ((float)(k / POINTS) + 0.5f) / POINTS) / (float)height;
                float u, v;

                pm_project(p, fx, fy, &u, &v);
                sum += sample(ink, u, v);
            }
            out[y * width + x] = sum / (POINTS * POINTS);
        }
}

/* ---- colours ------------------------------------------------------------------------------ */

/* Copies a random part of the photo, of the picture's shape, nearest pixels. */
static void copy_photo(struct pm_rng *r, const struct pm_image8 *photo, int height, int width,
                       float *rgb)
{
    const float fit = fminf((float)photo->height / (float)height,
                            (float)photo->width / (float)width);
    const float scale = fit * pm_draw_uniform(r, 0.2f, 1);
    const float y0 = pm_draw_uniform(r, 0, (float)photo->height - scale * (float)height);
    const float x0 = pm_draw_uniform(r, 0, (float)photo->width - scale * (float)width);

    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int py = (int)(y0 + ((float)y + 0.5f) * scale);
            int px = (int)(x0 + ((float)x + 0.5f) * scale);

            py = py < photo->height ? py : photo->height - 1; /* by rounding */
            px = px < photo->width ? px : photo->width - 1;
            for (int c = 0; c < 3; c++)
                rgb[3 * (y * width + x) + c] =
                    (float)photo->pixels[3 * ((size_t)py * (size_t)photo->width + (size_t)px) +
                                         (size_t)c] / 255;
        }
}

static float luma(struct pm_colour c)
{
    return 0.299f * c.c[0] + 0.587f * c.c[1] + 0.114f * c.c[2];
}

static struct pm_colour mean_of(const float *rgb, int pixels)
{
    struct pm_colour out = { { 0 } };

    for (int i = 0; i < pixels; i++)
        for (int c = 0; c < 3; c++)
            out.c[c] += rgb[3 * i + c] / (float)pixels;
    return out;
}

/* A colour whose brightness differs from the ground's: people choose colours that can be read. */
static struct pm_colour ink_colour(struct pm_rng *r, struct pm_colour ground)
{
    struct pm_colour out = { { 0 } };

    for (int tries = 0; tries < 64; tries++) {
        out = pm_colour_random(r);
        if (fabsf(luma(out) - luma(ground)) > 0.3f)
            return out;
    }
    return luma(ground) > 0.5f ? (struct pm_colour){ { 0, 0, 0 } }
                               : (struct pm_colour){ { 1, 1, 1 } };
}

static void blend(float *rgb, const float *cover, int height, int width, int dy, int dx,
                  struct pm_colour colour, float strength)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            const int sy = y - dy, sx = x - dx;

            if (sy < 0 || sy >= height || sx < 0 || sx >= width)
                continue;
            for (int c = 0; c < 3; c++) {
                float *p = rgb + 3 * (y * width + x) + c;
                *p += (colour.c[c] - *p) * strength * cover[sy * width + sx];
            }
        }
}

/* Smooths with weights 1 2 1 along rows and columns, edges repeated. */
static void smooth(float *rgb, int height, int width, float *space)
{
    for (int pass = 0; pass < 2; pass++) {
        const int step = pass ? 3 * width : 3, last = (pass ? height : width) - 1;

        for (int i = 0; i < 3 * height * width; i++) {
            const int at = pass ? i / (3 * width) : i / 3 % width;

            space[i] =
                (rgb[at > 0 ? i - step : i] + 2 * rgb[i] + rgb[at < last ? i + step : i]) / 4;
        }
        memcpy(rgb, space, (size_t)(3 * height * width) * sizeof *rgb);
    }
}

/* The ink's corners in the picture, in pixels. */
static void place_points(const struct pm_projection *p, const struct pm_word_ink *ink, int height,
                         int width, float points[PM_WORD_CORNERS])
{
    float of_ink[PM_WORD_CORNERS];

    pm_word_points_of_picture(ink->height, ink->width, of_ink);
    for (int i = 0; i < PM_WORD_CORNERS; i += 2) {
        float x, y;

        pm_project_back(p, of_ink[i], of_ink[i + 1], &x, &y);
        points[i] = x * (float)width;
        points[i + 1] = y * (float)height;
    }
}

void pm_word_draw(struct pm_rng *r, const struct pm_word_ink *ink, int height,
                  const struct pm_image8 *photo, struct pm_image8 *out,
                  float points[PM_WORD_CORNERS])
{
    float aspect;
    const struct pm_projection p = place(r, ink, &aspect);
    const int most = 16 * height, wanted = (int)(aspect * (float)height + 0.5f);
    const int width = wanted < 4 ? 4 : wanted > most ? most : wanted;
    const size_t pixels = (size_t)height * (size_t)width;
    float *rgb = pm_malloc(3 * pixels * sizeof *rgb), *space = pm_malloc(3 * pixels * sizeof *rgb);
    float *cover = pm_malloc(pixels * sizeof *cover);
    struct pm_colour colour;

    if (photo) {
        copy_photo(r, photo, height, width, rgb);
    } else {
        const struct pm_ground g = pm_ground_random(r, height);
        pm_ground_draw(&g, r, height, width, rgb);
    }
    project(&p, ink, height, width, cover);
    if (points)
        place_points(&p, ink, height, width, points);
    colour = ink_colour(r, mean_of(rgb, (int)pixels));
    if (pm_draw_uniform(r, 0, 1) < 0.25f) { /* a shadow */
        const int most_off = 1 + height / 32;
        const int dy = (int)pm_rng_int(r, -most_off, most_off);
        const int dx = (int)pm_rng_int(r, -most_off, most_off);
        const float dark = luma(colour) > 0.5f ? 0 : 1;

        blend(rgb, cover, height, width, dy, dx, (struct pm_colour){ { dark, dark, dark } }, 0.5f);
    }
    blend(rgb, cover, height, width, 0, 0, colour, pm_draw_uniform(r, 0.75f, 1));
    for (int64_t n = pm_rng_int(r, -2, 2); n > 0; n--) /* a blur in two of five pictures */
        smooth(rgb, height, width, space);
    const float grain = pm_draw_uniform(r, 0, 0.08f);

    *out = (struct pm_image8){ height, width, 3, pm_malloc(3 * pixels) };
    for (size_t i = 0; i < 3 * pixels; i++) {
        const float noise = grain * (float)(pm_rng_uniform(r) - 0.5);
        out->pixels[i] = (uint8_t)(pm_clamp01(rgb[i] + noise) * 255 + 0.5f);
    }
    pm_free(rgb);
    pm_free(space);
    pm_free(cover);
}
