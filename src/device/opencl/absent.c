/* absent: stands for the OpenCL backend in a build without OpenCL. */
#include "device/backend.h"

int pm_opencl_list(struct pm_device_info **list, size_t *count)
{
    (void)list, (void)count;
    return PM_OK;
}

const char *pm_opencl_absence(void)
{
    return "this build has no OpenCL: PUMICE_OPENCL was off, or headers were missing";
}

int pm_opencl_open(const struct pm_device_info *info, const struct pm_device_options *options,
                   struct pm_device **out)
{
    (void)options, (void)out;
    return pm_fail(PM_EDEVICE, "%s: %s", info->address, pm_opencl_absence());
}
