/* kernel: the interface between the computation and the device that runs it. A kernel row names its
 * buffers, parameters, C function and shader. A call is a row with shapes and buffers filled in. A
 * training step is an array of calls: the CPU loops over it, Vulkan records it once and replays
 * it, OpenCL submits its calls in every run. */
#ifndef PUMICE_KERNEL_H
#define PUMICE_KERNEL_H

#include <pumice/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tensors --------------------------------------------------------------------------- */

enum pm_type { PM_F32, PM_I32, PM_U32, PM_U8 };
size_t pm_type_size(enum pm_type t);

/* Row-major; images are NHWC. rank 0 is a scalar (count 1). */
enum { PM_MAX_RANK = 6 };
struct pm_shape {
    int rank;
    int dim[PM_MAX_RANK];
};
#define PM_SHAPE1(a) ((struct pm_shape){ 1, { a } })
#define PM_SHAPE2(a, b) ((struct pm_shape){ 2, { a, b } })
#define PM_SHAPE3(a, b, c) ((struct pm_shape){ 3, { a, b, c } })
#define PM_SHAPE4(n, h, w, c) ((struct pm_shape){ 4, { n, h, w, c } })
size_t pm_shape_count(struct pm_shape s);
bool pm_shape_equal(struct pm_shape a, struct pm_shape b);
/* "8x224x224x3"; buf of 64 bytes. */
char *pm_shape_text(struct pm_shape s, char buf[64]);

/* A value of a plan: shape, type and the number of its storage. Owns nothing; copied freely. value
 * is an index into the call list's values; -1 means "none" (a gradient that no call needs). */
struct pm_tensor {
    struct pm_shape shape;
    enum pm_type type;
    int value;
};
#define PM_NO_TENSOR ((struct pm_tensor){ .value = -1 })
static inline size_t pm_count(struct pm_tensor t) { return pm_shape_count(t.shape); }
static inline bool pm_has(struct pm_tensor t) { return t.value >= 0; }

/* Values that the host may put into an input. Verification and benchmarks draw them. */
enum pm_pattern {
    PM_PATTERN_ANY,    /* low..high */
    PM_PATTERN_BOXES,  /* F32, groups of 4: y0, x0, y1, x1 in low..high, y0 < y1 and x0 < x1 */
    PM_PATTERN_CHOSEN, /* I32: -1 (none), and one element of 32 in low..high */
};
struct pm_values {
    double low, high; /* low <= high */
    enum pm_pattern pattern;
};
struct pm_rng;
/* Writes `count` random elements of this type. */
void pm_values_draw(struct pm_values v, enum pm_type type, size_t count, struct pm_rng *r,
                    void *out);

/* ---- per-step values ------------------------------------------------------------------- */

/* Everything except data that changes from step to step. It is copied to the device before the
 * first call, so recorded calls never change. Kernels that need it list it as a buffer (r:step). It
 * holds scalars only, so C and GLSL (scalar layout) agree: shaders/lib/step.glsl is the twin. */
struct pm_step {
    uint32_t step;      /* number of updates done before this one; 0 for the first */
    uint32_t seed_low, seed_high;
    float lr;           /* learning rate of this step */
    float loss_scale;   /* factor on the losses' gradients; 1 unless fp16 needs more */
    float beta1_power, beta2_power; /* beta^(step + 1), in double on the host; Adam */
    float ema_decay;    /* decay of the variables' moving averages in this step */
};

/* ---- kernel rows ----------------------------------------------------------------------- */

enum { PM_MAX_BUFS = 16, PM_MAX_SPEC = 24, PM_MAX_DISPATCHES = 8 };

/* What a CPU function gets. Buffers are in row order; an absent one ("?" in the row) is NULL. */
struct pm_args {
    const void *params;
    void *buf[PM_MAX_BUFS];
    size_t count;   /* work items: the range that cpu() is called over */
    void *state;    /* from prepare(), else NULL */
    size_t bytes[PM_MAX_BUFS];
};

/* What a device can do. Filled at creation; pick() functions read it. */
/* Classes of device with their own tile table. The class comes from driver id and vendor. */
enum pm_class {
    PM_CLASS_OTHER,
    PM_CLASS_LAVAPIPE,   /* CPU drivers with subgroups of 8 and more */
    PM_CLASS_SWIFTSHADER,
    PM_CLASS_POCL,       /* OpenCL's CPU drivers */
    PM_CLASS_AMD_RDNA,
    PM_CLASS_AMD_GCN,
    PM_CLASS_NVIDIA,
    PM_CLASS_INTEL,
};
/* Whether the class is one of drivers that run shaders on the CPU. */
static inline bool pm_class_on_cpu(enum pm_class c)
{
    return c == PM_CLASS_LAVAPIPE || c == PM_CLASS_SWIFTSHADER || c == PM_CLASS_POCL;
}
struct pm_caps {
    /* Capabilities that callers must treat differently, and why. No caller asks for the backend's
     * name. */
    /* Calls are shaders: pick() chooses among variants, and the class and the limits below apply.
     * False: calls are the rows' C functions, variant "cpu". */
    bool runs_shaders;
    bool needs_verification; /* A driver compiles the kernels, so their results are compared with
                              * the CPU's before their first use (verify.h). */
    bool timed_by_queries;   /* To time single calls, they must run one after the other; a plan
                              * keeps a second recording for that. False: timing costs nothing. */
    bool on_host_cores;      /* The CPU and software drivers: slow, slowed down by other work on the
                              * machine, and never chosen by "auto" before a GPU. */
    enum pm_class device_class;
    uint32_t subgroup_size;            /* 1 on the CPU */
    uint32_t max_workgroup_size[3];
    uint32_t max_workgroup_invocations;
    uint32_t max_groups[3];            /* at least 65535 each */
    uint32_t shared_bytes;             /* per workgroup */
    uint32_t compute_units;            /* NVIDIA: SMs, ARM: cores; 0 for software drivers */
    bool compute_units_guessed;        /* the driver does not report them */
    uint64_t max_buffer_bytes;         /* largest single buffer */
    bool int64, float16, storage16, subgroup_arithmetic;
    bool last_group; /* A workgroup that counts itself as the last may read what the others wrote
                      * before they counted. OpenCL 1.2 does not promise this. */
    /* Cooperative matrices: a subgroup multiplies m x k by k x n 16-bit floats and sums in 32 bits.
     * The largest such tile; 0: none. */
    struct { uint32_t m, n, k; } coopmat;
    int threads;                       /* host threads that calls run on; 0 if runs_shaders */
};

/* One vkCmdDispatch. The push block holds the addresses of the row's buffers in row order (absent:
 * 0), then the params struct. If the shader declares specialization constants 0, 1 and 2, they are
 * the workgroup size; spec[i] is the value of constant id i. */
struct pm_dispatch {
    const char *shader; /* name in the embedded table */
    uint32_t spec[PM_MAX_SPEC];
    int specs;
    uint32_t groups[3];
};
struct pm_picks {
    struct pm_dispatch d[PM_MAX_DISPATCHES]; /* run in order, with a barrier between each two */
    int count;
    size_t scratch[PM_MAX_BUFS]; /* bytes wanted for buffer i if the row says "t:" or "z:" */
    const char *variant;         /* name for logs, profile and PM_VARIANT */
};

/* Statistics that a call hands to a later call, so that the later one need not read the image. An
 * image is [rows][channels] and has chunks of PM_MOMENT_ROWS rows; the last may be shorter. The
 * buffer `moments` [chunks][2][channels] has each chunk's mean, and its sum of squared distances
 * from this mean. "w?:moments" of a row: the call computes the moments of its first w: or u:
 * buffer. "r?:moments": the call takes the moments of its first buffer instead of the buffer
 * itself, which is optional, too. net/share_moments.h connects them. */
enum { PM_MOMENT_ROWS = 64 };
struct pm_rows {
    size_t rows;
    int channels;
};
static inline size_t pm_moment_chunks(struct pm_rows r)
{
    return (r.rows + PM_MOMENT_ROWS - 1) / PM_MOMENT_ROWS;
}

/* One kind of call. Every row has a C function and a shader, because everything inside a step runs
 * on the step's device. Other work has its own place:
 * - The loader's threads make values that need only labels, before the step (task.h).
 * - Work after a step (grouping, metrics, drawing) is ordinary host code on the step's outputs.
 * No row runs on the host within a step: a GPU would wait inside submit, so several GPUs would
 * take turns. */
struct pm_kernel {
    const char *name;
    /* Space-separated "access:name". Access: r read, w wholly overwritten, u read and written
     * (accumulated gradients, slots, averages), t scratch of this call, z counters of this call.
     * "r?:b" may be absent. Counters are 32-bit integers that are zero before the first run, and
     * that the call sets back to zero. No other call uses them. The CPU has none. */
    const char *bufs;
    size_t params_size; /* multiple of 4; int, unsigned and float members only */
    /* Offset + 1 of an int member `accumulate` that the planner sets: 0 in the first call of a step
     * that adds to the row's u: buffer(s), 1 in later ones. 0: the row has no such member. */
    size_t accumulate;
    /* Offset + 1 of an int member `moments` that the planner sets to 1 if it binds the row's buffer
     * `moments` (above). 0: the row has no such member. */
    size_t moments;
    /* Rows and channels of the image that `moments` describes. */
    struct pm_rows (*moments_of)(const void *params);
    /* "y=x": output y may use the memory of input x if no later call reads x. Comma list. */
    const char *inplace;

    /* Exactly one of the two is set. cpu: works on a range of count; called from many threads on
     * disjoint ranges that are multiples of grain (0 = 1024). cpu_all: called once; may use
     * pm_parallel and libraries. */
    void (*cpu)(const struct pm_args *a, size_t begin, size_t end);
    void (*cpu_all)(const struct pm_args *a);
    size_t grain;
    /* Makes the per-call state of the CPU function when the program is made (buffers are NULL
     * then). */
    int (*prepare)(const void *params, void **state);
    void (*release)(void *state);
    /* Returns the bytes of scratch buffer `buf` (row order) on the CPU. NULL: the row has no t:, or
     * needs no scratch on the CPU. SIZE_MAX: it failed, pm_error_text says why. */
    size_t (*cpu_scratch)(const void *params, int buf);

    /* Chooses the dispatches for this device. Level 0 is the preferred variant; higher levels are
     * simpler, down to the naive one. Returns false if the level has no variant. NULL: one
     * grid-stride dispatch of the shader `shader` (default: name) with 64 invocations per group. */
    bool (*pick)(const struct pm_caps *caps, const void *params, size_t count, int level,
                 struct pm_picks *out);
    const char *shader;
    /* Returns the floating-point operations of a call, for the work limit, bench and profile. NULL:
     * one operation per work item. */
    double (*flops)(const void *params, size_t count);
};

/* Buffers of a row, parsed from its text. */
struct pm_buf_spec {
    char access;      /* 'r' 'w' 'u' 't' 'z' */
    bool optional;
    char name[24];
};
/* Whether a call brings the buffer itself, and its size comes from pm_call_scratch. */
static inline bool pm_access_own(char access)
{
    return access == 't' || access == 'z';
}
/* Fills spec[PM_MAX_BUFS] and returns the count; a malformed row is an assertion failure. */
int pm_kernel_bufs(const struct pm_kernel *k, struct pm_buf_spec spec[PM_MAX_BUFS]);
/* The same for a call with these params: if its member `accumulate` is 0, the call overwrites its
 * u: buffers, so their access is 'w'. */
int pm_call_bufs(const struct pm_kernel *k, const void *params,
                 struct pm_buf_spec spec[PM_MAX_BUFS]);
/* Reads the row's inplace text: pair[i] = { y, x }, buffers in row order. Returns the count. */
enum { PM_MAX_INPLACE = 4 };
int pm_kernel_inplace(const struct pm_kernel *k, int pair[PM_MAX_INPLACE][2]);
/* The default pick(), and a helper for element-wise rows: groups of `size` over count items, at
 * most 65535 groups. */
bool pm_pick_elements(const char *shader, uint32_t size, size_t count, struct pm_picks *out);

/* A call with addresses, ready for a device to run. */
struct pm_buffer; /* device memory, owned by its device's user */
struct pm_place {
    struct pm_buffer *buffer; /* borrowed; NULL: absent */
    size_t offset, size;      /* bytes; offset is a multiple of 256. Size 0: a "?" buffer is absent,
                               * and shaders have no code that uses it */
};
struct pm_bound_call {
    const struct pm_kernel *kernel;
    const char *label; /* layer's name, for logs, traces and errors; borrowed */
    size_t count;
    const void *params; /* borrowed */
    struct pm_place buf[PM_MAX_BUFS];
};

#ifdef __cplusplus
}
#endif

#endif
