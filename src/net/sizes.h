/* sizes: plans of one net for pictures of several sizes. They use the same variables and, one after
 * the other, the same memory for activations, which is as large as the largest of them needs. */
#ifndef PM_SIZES_H
#define PM_SIZES_H

#include <pumice/plan.h>

/* A net for one size, and its plan. */
struct pm_sized {
    int height, width;
    struct pm_net *net;
    struct pm_plan *plan;
};
struct pm_sizes_options {
    struct pm_device *device; /* borrowed */
    int keep;                 /* plans made on demand that are kept; at least 1 */
    /* Builds the net of a size and creates, but does not load, a plan of it with .activations =
     * shared. The sizes destroy the plan; release frees the net after it. */
    int (*make)(void *ctx, int height, int width, struct pm_shared_memory *shared,
                struct pm_sized *out);
    void (*release)(void *ctx, struct pm_net *net);
    void *ctx;
};
/* Not thread-safe. Its plans run one at a time: wait for a run before another plan is submitted. */
struct pm_sizes;
struct pm_sizes *pm_sizes_create(const struct pm_sizes_options *o);
void pm_sizes_destroy(struct pm_sizes **s);
/* Plans all of these sizes at once, which stay until the end: training sizes. Their memory is
 * allocated once, for the largest. height_width: count pairs. */
int pm_sizes_prepare(struct pm_sizes *s, const int (*height_width)[2], int count);
/* The plan of a size, loaded, made when it is not there; the plan that was used longest ago goes when
 * there are more than keep of them. No run may be under way. *out is good until the next call. */
int pm_sizes_get(struct pm_sizes *s, int height, int width, struct pm_sized *out);
int pm_sizes_count(const struct pm_sizes *s);       /* plans at present */
uint64_t pm_sizes_made(const struct pm_sizes *s);   /* plans made so far */
uint64_t pm_sizes_bytes(const struct pm_sizes *s);  /* of activations on the device */

#endif
