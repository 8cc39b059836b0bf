/* augment_auto_pixels: the operations of AutoAugment on pixels, after the learned policies of Zoph
 * et al., Learning Data Augmentation Strategies for Object Detection, 2019. augment_auto.h has the
 * contract. Contrast blends with the mean of the grey picture. TensorFlow's program divides the
 * number of pixels by 256 instead, which no published result depends on. */
#include <math.h>
#include <string.h>

#include "data/augment_auto.h"
#include "data/render.h"

static size_t row_values(struct pm_area a)
{
    return (size_t)a.width * (size_t)a.channels;
}

static float limited(float v)
{
    return !(v > 0) ? 0 : v > 255 ? 255 : v; /* NaN, which other rows could leave: 0 */
}

void pm_area_truncate(struct pm_area a)
{
    for (int y = 0; y < a.height; y++)
        for (size_t i = 0; i < row_values(a); i++) {
            float *v = a.v + (size_t)y * a.stride + i;

            *v = truncf(limited(*v));
        }
}

/* ---- tables of values ---------------------------------------------------------------------- */

static void look_up(struct pm_area a, int channel, const float table[256])
{
    for (int y = 0; y < a.height; y++)
        for (int x = 0; x < a.width; x++) {
            float *v = a.v + (size_t)y * a.stride + (size_t)(x * a.channels + channel);

            *v = table[(int)*v];
        }
}

static void look_up_all(struct pm_area a, const float table[256])
{
    for (int c = 0; c < a.channels; c++)
        look_up(a, c, table);
}

static void count_values(struct pm_area a, int channel, int counts[256])
{
    memset(counts, 0, 256 * sizeof *counts);
    for (int y = 0; y < a.height; y++)
        for (int x = 0; x < a.width; x++)
            counts[(int)a.v[(size_t)y * a.stride + (size_t)(x * a.channels + channel)]]++;
}

void pm_area_autocontrast(struct pm_area a)
{
    for (int c = 0; c < a.channels; c++) {
        int counts[256], low = 0, high = 255;
        float table[256];

        count_values(a, c, counts);
        while (low < 255 && !counts[low])
            low++;
        while (high > 0 && !counts[high])
            high--;
        if (high <= low)
            continue;
        const float scale = 255.0f / (float)(high - low), offset = (float)-low * scale;
        for (int i = 0; i < 256; i++)
            table[i] = truncf(limited((float)i * scale + offset));
        look_up(a, c, table);
    }
}

/* Pillow's rule: every step of the new values has as many pixels as the others. */
void pm_area_equalize(struct pm_area a)
{
    for (int c = 0; c < a.channels; c++) {
        int counts[256], last = 255, below = 0;
        float table[256];

        count_values(a, c, counts);
        while (last > 0 && !counts[last])
            last--;
        const int step = (a.height * a.width - counts[last]) / 255;
        if (step == 0)
            continue;
        for (int i = 0; i < 256; i++) {
            table[i] = limited((float)((below + step / 2) / step));
            below += counts[i];
        }
        table[0] = 0;
        look_up(a, c, table);
    }
}

void pm_area_posterize(struct pm_area a, int bits)
{
    float table[256];

    for (int i = 0; i < 256; i++)
        table[i] = (float)(i >> (8 - bits) << (8 - bits));
    look_up_all(a, table);
}

void pm_area_solarize(struct pm_area a, int threshold)
{
    float table[256];

    for (int i = 0; i < 256; i++)
        table[i] = (float)(i < threshold ? i : 255 - i);
    look_up_all(a, table);
}

void pm_area_solarize_add(struct pm_area a, int add)
{
    float table[256];

    for (int i = 0; i < 256; i++)
        table[i] = i < 128 ? limited((float)(i + add)) : (float)i;
    look_up_all(a, table);
}

/* ---- blends -------------------------------------------------------------------------------- */

static float blend(float degenerate, float v, float factor)
{
    return truncf(limited(degenerate + factor * (v - degenerate)));
}

static float grey_of(const float *pixel, int channels)
{
    return channels == 3 ? truncf(pm_luma(pixel) * (255.5f / 255)) : *pixel;
}

void pm_area_color(struct pm_area a, float factor)
{
    for (int y = 0; y < a.height; y++)
        for (int x = 0; x < a.width; x++) {
            float *pixel = a.v + (size_t)y * a.stride + (size_t)(x * a.channels);
            const float grey = grey_of(pixel, a.channels);

            for (int c = 0; c < a.channels; c++)
                pixel[c] = blend(grey, pixel[c], factor);
        }
}

static void blend_with(struct pm_area a, float degenerate, float factor)
{
    float table[256];

    for (int i = 0; i < 256; i++)
        table[i] = blend(degenerate, (float)i, factor);
    look_up_all(a, table);
}

void pm_area_contrast(struct pm_area a, float factor)
{
    double sum = 0;

    for (int y = 0; y < a.height; y++)
        for (int x = 0; x < a.width; x++)
            sum += (double)grey_of(a.v + (size_t)y * a.stride + (size_t)(x * a.channels),
                                   a.channels);
    blend_with(a, (float)floor(sum / ((double)a.height * a.width) + 0.5), factor);
}

void pm_area_brightness(struct pm_area a, float factor)
{
    blend_with(a, 0, factor);
}

static float *copy_of(struct pm_area a)
{
    const size_t values = row_values(a);
    float *out = pm_arena_alloc(a.arena, (size_t)a.height * values * sizeof *out + 1);

    for (int y = 0; y < a.height; y++)
        memcpy(out + (size_t)y * values, a.v + (size_t)y * a.stride, values * sizeof *out);
    return out;
}

/* The smooth picture has weights 5 for the pixel and 1 for its eight neighbours, divided by 13. The
 * border stays. */
void pm_area_sharpness(struct pm_area a, float factor)
{
    const float *from = copy_of(a);
    const int channels = a.channels, values = (int)row_values(a);

    for (int y = 1; y + 1 < a.height; y++)
        for (int i = channels; i < values - channels; i++) {
            const float *at = from + (size_t)y * (size_t)values + i;
            int sum = 4 * (int)*at;

            for (int k = -1; k <= 1; k++)
                sum += (int)at[k * values - channels] + (int)at[k * values] +
                       (int)at[k * values + channels];
            a.v[(size_t)y * a.stride + (size_t)i] = blend((float)(sum / 13), *at, factor);
        }
}

/* ---- places -------------------------------------------------------------------------------- */

static int within(int v, int most)
{
    return v < 0 ? 0 : v > most ? most : v;
}

void pm_area_cut(struct pm_area a, int y, int x, int rows, int columns)
{
    const int left = within(x - columns, a.width), right = within(x + columns, a.width);

    for (int row = within(y - rows, a.height); row < within(y + rows, a.height); row++)
        for (int i = left * a.channels; i < right * a.channels; i++)
            a.v[(size_t)row * a.stride + (size_t)i] = PM_AUTO_FILL;
}

void pm_area_warp(struct pm_area a, const float warp[6])
{
    struct pm_move m = { .kind = PM_MOVE_WARP, .height = a.height, .width = a.width };
    const float *copy = copy_of(a);

    memcpy(m.warp, warp, sizeof m.warp);
    for (int y = 0; y < a.height; y++)
        for (int x = 0; x < a.width; x++) {
            float *to = a.v + (size_t)y * a.stride + (size_t)(x * a.channels);
            int from_y, from_x;
            const bool inside = pm_warp_origin(&m, y, x, &from_y, &from_x);

            for (int c = 0; c < a.channels; c++)
                to[c] = inside ? copy[(from_y * a.width + from_x) * a.channels + c] : PM_AUTO_FILL;
        }
}
