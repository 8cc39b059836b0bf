/* rotated_prepare: a box of five numbers becomes the struct rotated of rotated_clip.h. This text is
 * C and GLSL, for float; include it after rotated_clip.h.
 *
 * Sine and cosine are pairs of floats with an error below 1e-10 for angles up to 10 turns, and the
 * same bits on all devices; those of Vulkan may be wrong by 2^-11. The angle is reduced to
 * r = angle - k pi / 2 in -pi/4..pi/4. There Taylor's series are used; the coefficients of high
 * powers need one float only. */

/* Limit of angles; above it, k pi / 2 has too few bits, and the angle counts as 0. */
#define PM_ANGLE_MOST 4e6f

PM_FUNCTION PM_STRUCT(pair) PM_OF(sine_near_0)(PM_STRUCT(pair) r)
{
    PM_STRUCT(pair) z = PM_OF(pair_multiply)(r, r);
    PM_EXACT PM_REAL rest =
        -1.98412701e-4f + z.high * (2.75573188e-6f - z.high * 2.50521079e-8f);
    PM_STRUCT(pair) t = PM_OF(pair_of)(rest, 0.0f);

    t = PM_OF(pair_add)(PM_OF(pair_of)(8.33333377e-3f, -4.34617203e-10f),
                        PM_OF(pair_multiply)(z, t));
    t = PM_OF(pair_add)(PM_OF(pair_of)(-0.166666672f, 4.96705388e-9f), PM_OF(pair_multiply)(z, t));
    t = PM_OF(pair_multiply)(z, t);
    return PM_OF(pair_add)(r, PM_OF(pair_multiply)(r, t));
}

PM_FUNCTION PM_STRUCT(pair) PM_OF(cosine_near_0)(PM_STRUCT(pair) r)
{
    PM_STRUCT(pair) z = PM_OF(pair_multiply)(r, r);
    PM_EXACT PM_REAL rest =
        -1.38888889e-3f +
        z.high * (2.48015876e-5f + z.high * (-2.75573200e-7f + z.high * 2.08767559e-9f));
    PM_STRUCT(pair) t = PM_OF(pair_of)(rest, 0.0f);

    t = PM_OF(pair_add)(PM_OF(pair_of)(4.16666679e-2f, -1.24176347e-9f),
                        PM_OF(pair_multiply)(z, t));
    t = PM_OF(pair_add)(PM_OF(pair_of)(-0.5f, 0.0f), PM_OF(pair_multiply)(z, t));
    return PM_OF(pair_add)(PM_OF(pair_of)(1.0f, 0.0f), PM_OF(pair_multiply)(z, t));
}

/* Negative sides count as 0. */
PM_FUNCTION PM_STRUCT(rotated) PM_OF(rotated_prepare)(PM_REAL y, PM_REAL x, PM_REAL h, PM_REAL w,
                                                      PM_REAL angle)
{
    PM_STRUCT(rotated) box;
    bool large = angle > PM_ANGLE_MOST || angle < -PM_ANGLE_MOST;
    PM_EXACT PM_REAL a = large ? 0.0f * angle : angle; /* NaN if it is infinite */
    PM_EXACT PM_REAL k = floor(a * 0.636619747f + 0.5f);
    PM_EXACT PM_REAL quarter = k - 4.0f * floor(k * 0.25f);
    PM_STRUCT(pair) whole = PM_OF(two_product)(k, 1.57079637f);
    PM_STRUCT(pair) t = PM_OF(two_sum)(a, -whole.high);
    PM_EXACT PM_REAL low = (t.low - whole.low) + k * 4.37113883e-8f;
    PM_STRUCT(pair) r = PM_OF(two_sum)(t.high, low);
    PM_STRUCT(pair) s = PM_OF(sine_near_0)(r), c = PM_OF(cosine_near_0)(r);
    bool odd = quarter == 1.0f || quarter == 3.0f;
    PM_REAL s_sign = quarter >= 2.0f ? -1.0f : 1.0f;
    PM_REAL c_sign = quarter == 1.0f || quarter == 2.0f ? -1.0f : 1.0f;

    box.y = y;
    box.x = x;
    box.h = h > 0.0f ? 0.5f * h : 0.0f;
    box.w = w > 0.0f ? 0.5f * w : 0.0f;
    box.c = c_sign * (odd ? s.high : c.high);
    box.c_low = c_sign * (odd ? s.low : c.low);
    box.s = s_sign * (odd ? c.high : s.high);
    box.s_low = s_sign * (odd ? c.low : s.low);
    return box;
}
