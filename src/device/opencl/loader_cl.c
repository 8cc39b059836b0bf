/* loader_cl: the OpenCL loader, which is opened when devices are listed, and names of results. */
#include "device/opencl/device_cl.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

void (*pm_cl_loaded)(struct cl *cl);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct cl functions;
static bool found;

static void open_loader(void)
{
    const char *name = getenv("PM_OPENCL_LOADER");
    void *library = dlopen(name && name[0] ? name : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        PM_DEBUG("opencl", "no loader: %s", dlerror());
        return;
    }
#define LOAD(name)                                                                                 \
    if (!(functions.name = (__typeof__(functions.name))dlsym(library, "cl" #name))) {              \
        PM_DEBUG("opencl", "the loader lacks cl" #name "; OpenCL 1.2 is needed");                  \
        return;                                                                                    \
    }
    PM_CL_FUNCTIONS(LOAD)
#undef LOAD
    found = true;
}

bool pm_cl_load(struct cl *out)
{
    pthread_once(&once, open_loader);
    *out = functions;
    if (found && pm_cl_loaded)
        pm_cl_loaded(out);
    return found;
}

const char *pm_opencl_absence(void)
{
    pthread_once(&once, open_loader);
    return found ? "no OpenCL driver lists a device"
                 : "the OpenCL loader, libOpenCL.so.1, is not installed (package "
                   "ocl-icd-libopencl1)";
}

/* ---- results ------------------------------------------------------------------------ */

const char *pm_cl_result_name(cl_int r)
{
    switch (r) {
#define NAME(n)                                                                                    \
    case n:                                                                                        \
        return #n;
        NAME(CL_SUCCESS)
        NAME(CL_DEVICE_NOT_FOUND)
        NAME(CL_DEVICE_NOT_AVAILABLE)
        NAME(CL_COMPILER_NOT_AVAILABLE)
        NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
        NAME(CL_OUT_OF_RESOURCES)
        NAME(CL_OUT_OF_HOST_MEMORY)
        NAME(CL_PROFILING_INFO_NOT_AVAILABLE)
        NAME(CL_BUILD_PROGRAM_FAILURE)
        NAME(CL_MAP_FAILURE)
        NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        NAME(CL_INVALID_VALUE)
        NAME(CL_INVALID_DEVICE)
        NAME(CL_INVALID_CONTEXT)
        NAME(CL_INVALID_COMMAND_QUEUE)
        NAME(CL_INVALID_MEM_OBJECT)
        NAME(CL_INVALID_BINARY)
        NAME(CL_INVALID_BUILD_OPTIONS)
        NAME(CL_INVALID_PROGRAM)
        NAME(CL_INVALID_PROGRAM_EXECUTABLE)
        NAME(CL_INVALID_KERNEL_NAME)
        NAME(CL_INVALID_KERNEL)
        NAME(CL_INVALID_ARG_INDEX)
        NAME(CL_INVALID_ARG_VALUE)
        NAME(CL_INVALID_ARG_SIZE)
        NAME(CL_INVALID_KERNEL_ARGS)
        NAME(CL_INVALID_WORK_DIMENSION)
        NAME(CL_INVALID_WORK_GROUP_SIZE)
        NAME(CL_INVALID_WORK_ITEM_SIZE)
        NAME(CL_INVALID_EVENT)
        NAME(CL_INVALID_OPERATION)
        NAME(CL_INVALID_BUFFER_SIZE)
        NAME(CL_INVALID_GLOBAL_WORK_SIZE)
#undef NAME
    default:
        return "a result without a name";
    }
}

int pm_cl_result(cl_int r, const char *text)
{
    const char *end = strchr(text, '('), *start = end ? end : text + strlen(text);
    const bool memory = r == CL_MEM_OBJECT_ALLOCATION_FAILURE || r == CL_OUT_OF_HOST_MEMORY;

    if (r == CL_SUCCESS)
        return PM_OK;
    while (start > text && start[-1] != '.' && start[-1] != '>')
        start--;
    return pm_fail(memory ? PM_EMEMORY : PM_EDEVICE, "cl%.*s: %s (%d)",
                   end ? (int)(end - start) : (int)strlen(start), start, pm_cl_result_name(r), r);
}
