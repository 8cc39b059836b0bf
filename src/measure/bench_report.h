/* bench_report: members that the reports of pm_bench_step and pm_bench_predict share. */
#ifndef PM_BENCH_REPORT_H
#define PM_BENCH_REPORT_H

#include <pumice/plan.h>

struct cJSON;

/* Appends {address, name, driver, threads (CPU), examples, memory_bytes, memory {...}, dispatches,
 * barriers, segments, bytes_moved} to a list. examples: pictures of a batch that this device
 * takes. m: of all its plans. The counts are those of `plan`. */
int pm_bench_add_device(struct cJSON *list, const struct pm_plan *plan, int examples,
                        struct pm_plan_memory m);
/* Returns the largest resident memory of this process so far, in bytes; 0: unknown. */
uint64_t pm_bench_peak_bytes(void);

#endif
