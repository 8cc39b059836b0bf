/* The direction of a lamb step, shared by the call that measures it and the call that applies
 * it. */
#ifndef PM_LAMB_GLSL
#define PM_LAMB_GLSL

float pm_lamb_direction(float mean_factor, float square_factor, float epsilon, float decay, float m,
                        float v, float w)
{
    return m * mean_factor / (sqrt(v * square_factor) + epsilon) + decay * w;
}

#endif
