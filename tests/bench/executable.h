/* executable: statistics of the pipelines that a driver's compiler made, by
 * VK_KHR_pipeline_executable_properties. Pumice itself does not use this extension:
 * executable_capture() replaces entries in the table of Vulkan functions between device and
 * driver. */
#ifndef PM_EXECUTABLE_H
#define PM_EXECUTABLE_H

#include "device/vulkan/device_vk.h"

/* One compute shader. */
struct executable {
    uint32_t subgroup; /* lanes that run together; on Intel the SIMD width */
    struct {
        char name[64];
        double value;
    } list[64];        /* statistics by the driver's own names */
    int count;
    /* AMD: vector instructions, and the fused multiply-adds among them, in the loop with most fused
     * multiply-adds; in the whole program without a loop; 0 unless asked for. */
    int loop_vector, loop_fma;
};

/* Captures statistics and listings of devices that are opened from now on. */
void executable_capture(void);
/* count_loop: also reads the listing, which must be AMD's, and counts its loop. */
int executable_read(struct vk_device *d, VkPipeline pipeline, bool count_loop,
                    struct executable *out);
/* The statistic of that name; -1 if the driver does not report it. */
double executable_value(const struct executable *e, const char *name);
/* Prints the listing in which the loop was counted. */
int executable_print(struct vk_device *d, VkPipeline pipeline, FILE *f);

#endif
