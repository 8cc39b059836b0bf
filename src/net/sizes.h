/* sizes: keeps plans of one net for several image sizes. The plans share the variables and, one at
 * a time, the memory for activations. That memory is as large as the largest plan needs. */
#ifndef PM_SIZES_H
#define PM_SIZES_H

#include <pumice/plan.h>

/* A net for one image size in pixels, and its plan. */
struct pm_sized {
    int height, width;
    struct pm_net *net;
    struct pm_plan *plan;
};
struct pm_sizes_options {
    struct pm_device *device; /* borrowed */
    int keep;                 /* most plans made on demand to keep; at least 1 */
    /* Builds the net of a size. Creates, but does not load, a plan of it with .activations =
     * shared. The sizes destroy the plan; release frees the net afterwards. */
    int (*make)(void *ctx, int height, int width, struct pm_shared_memory *shared,
                struct pm_sized *out);
    void (*release)(void *ctx, struct pm_net *net);
    void *ctx;
};
/* Not thread-safe. Runs of the plans may be submitted one after the other without a wait: a device
 * runs them in order. No run may be in progress when a plan is made. */
struct pm_sizes;
struct pm_sizes *pm_sizes_create(const struct pm_sizes_options *o);
void pm_sizes_destroy(struct pm_sizes **s);
/* Plans all of these sizes and keeps them to the end, but loads and allocates nothing. Use it for
 * training sizes. height_width: `count` pairs. */
int pm_sizes_plan(struct pm_sizes *s, const int (*height_width)[2], int count);
/* The same, and loads the plans. Their memory is allocated once, for the largest. */
int pm_sizes_prepare(struct pm_sizes *s, const int (*height_width)[2], int count);
/* Returns the net and the plan of a prepared or planned size; asserts that it is there. They stay
 * valid until the sizes are destroyed. */
struct pm_sized pm_sizes_prepared(const struct pm_sizes *s, int height, int width);
/* Returns the loaded plan of a size and makes it if it does not exist. If there are more than
 * `keep` plans, the least recently used one is destroyed. No run may be in progress. *out is valid
 * until the next call. */
int pm_sizes_get(struct pm_sizes *s, int height, int width, struct pm_sized *out);
int pm_sizes_count(const struct pm_sizes *s);       /* plans that exist now */
uint64_t pm_sizes_made(const struct pm_sizes *s);   /* plans made so far */
uint64_t pm_sizes_bytes(const struct pm_sizes *s);  /* bytes of activations on the device */
/* Bytes of activations on the device once every plan that exists now is loaded. */
uint64_t pm_sizes_need(const struct pm_sizes *s);

#endif
