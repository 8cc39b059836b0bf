/* executable: statistics of the pipelines that a driver's compiler made, by
 * VK_KHR_pipeline_executable_properties. Pumice itself does not use this extension:
 * executable_capture() replaces entries in the table of Vulkan functions between device and
 * driver. */
#ifndef PM_EXECUTABLE_H
#define PM_EXECUTABLE_H

#include "device/vulkan/device_vk.h"

/* One compute shader. Numbers that the driver does not report are -1. */
struct executable {
    double vgprs, sgprs;           /* registers of a lane and of a wave */
    double spilled_vgprs, spilled_sgprs;
    double lds, scratch, code;     /* bytes of a workgroup, of a lane, of the program */
    double waves;                  /* waves that a SIMD holds at a time */
    double instructions, vector;   /* all instructions, and those of the vector unit */
    double latency, throughput;    /* the compiler's estimates in cycles; throughput is inverse */
    /* Vector instructions, and the fused multiply-adds among them, in the loop with most fused
     * multiply-adds; in the whole program without a loop; 0 without a listing. */
    int loop_vector, loop_fma;
};

/* Captures statistics and listings of devices that are opened from now on. */
void executable_capture(void);
int executable_read(struct vk_device *d, VkPipeline pipeline, struct executable *out);
/* Prints the listing in which the loop was counted. */
int executable_print(struct vk_device *d, VkPipeline pipeline, FILE *f);

#endif
