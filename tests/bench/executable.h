/* executable: what a driver's compiler says of the pipelines that it made, by
 * VK_KHR_pipeline_executable_properties. Pumice itself never asks for that: executable_capture()
 * goes between the device and its driver by the table of Vulkan's functions. */
#ifndef PM_EXECUTABLE_H
#define PM_EXECUTABLE_H

#include "device/vulkan/device_vk.h"

/* One compute shader. Numbers that a driver does not tell are -1. */
struct executable {
    double vgprs, sgprs;           /* registers: a lane's, a wave's */
    double spilled_vgprs, spilled_sgprs;
    double lds, scratch, code;     /* bytes: of a workgroup, a lane, the program */
    double waves;                  /* that a SIMD holds at a time */
    double instructions, vector;   /* all, and those of the vector unit */
    double latency, throughput;    /* the compiler's estimates, in cycles; throughput is inverse */
    /* In the loop with most fused multiply-adds, or all of it without one: vector instructions and
     * the fused multiply-adds among them; 0 without a listing. */
    int loop_vector, loop_fma;
};

/* Devices opened from now on capture statistics and listings. */
void executable_capture(void);
int executable_read(struct vk_device *d, VkPipeline pipeline, struct executable *out);
/* Prints the listing from which the loop's numbers are counted. */
int executable_print(struct vk_device *d, VkPipeline pipeline, FILE *f);

#endif
