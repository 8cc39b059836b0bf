/* projection, internal to data/: the projective map of the unit square to a convex quadrangle. */
#ifndef PUMICE_DATA_PROJECTION_H
#define PUMICE_DATA_PROJECTION_H

/* u = (m[0] x + m[1] y + m[2]) / w, v = (m[3] x + m[4] y + m[5]) / w, w = m[6] x + m[7] y + 1. */
struct pm_projection {
    float m[8];
};

/* The map of the corners (0, 0), (1, 0), (1, 1), (0, 1) to (u[i], v[i]), which form a convex
 * quadrangle. */
static inline struct pm_projection pm_projection_to(const float u[4], const float v[4])
{
    const float sum_u = u[0] - u[1] + u[2] - u[3], sum_v = v[0] - v[1] + v[2] - v[3];
    const float du1 = u[1] - u[2], du2 = u[3] - u[2], dv1 = v[1] - v[2], dv2 = v[3] - v[2];
    const float area = du1 * dv2 - dv1 * du2;
    const float g = (sum_u * dv2 - sum_v * du2) / area, h = (du1 * sum_v - dv1 * sum_u) / area;

    return (struct pm_projection){ { u[1] - u[0] + g * u[1], u[3] - u[0] + h * u[3], u[0],
                                     v[1] - v[0] + g * v[1], v[3] - v[0] + h * v[3], v[0], g,
                                     h } };
}

static inline void pm_project(const struct pm_projection *p, float x, float y, float *u, float *v)
{
    const float w = p->m[6] * x + p->m[7] * y + 1;

    *u = (p->m[0] * x + p->m[1] * y + p->m[2]) / w;
    *v = (p->m[3] * x + p->m[4] * y + p->m[5]) / w;
}

/* The point that pm_project maps to u, v. */
static inline void pm_project_back(const struct pm_projection *p, float u, float v, float *x,
                                   float *y)
{
    const float a = p->m[0] - u * p->m[6], b = p->m[1] - u * p->m[7], c = u - p->m[2];
    const float d = p->m[3] - v * p->m[6], e = p->m[4] - v * p->m[7], f = v - p->m[5];
    const float area = a * e - b * d;

    *x = (c * e - b * f) / area;
    *y = (a * f - c * d) / area;
}

#endif
