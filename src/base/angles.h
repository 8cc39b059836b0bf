/* angles: pi, and degrees as radians. */
#ifndef PM_ANGLES_H
#define PM_ANGLES_H

#define PM_PI 3.14159265358979323846

static inline double pm_radians(double degrees)
{
    return degrees * PM_PI / 180;
}

#endif
