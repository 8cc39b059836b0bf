#ifndef PM_LOG1P_GLSL
#define PM_LOG1P_GLSL

/* ln(1 + e) for e in 0..1: 2 artanh(e / (2 + e)). GLSL has no such function, and log(1 + e) loses
 * small e. Twin of pm_log1pf in src/layers/vmath.h. */
float log1p(float e)
{
    float s = e / (2.0 + e), t = s * s, y = 2.0 / 15.0;

    y = y * t + 2.0 / 13.0;
    y = y * t + 2.0 / 11.0;
    y = y * t + 2.0 / 9.0;
    y = y * t + 2.0 / 7.0;
    y = y * t + 2.0 / 5.0;
    y = y * t + 2.0 / 3.0;
    y = y * t + 2.0;
    return s * y;
}

#endif
