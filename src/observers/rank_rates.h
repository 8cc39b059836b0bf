/* rank_rates: the speeds of the processes that train together, for metrics.jsonl, TensorBoard,
 * run.json and the summary of --json. The seconds of a process in a step are those of its slowest
 * device, with the waiting for data, and without the waiting for other processes. */
#ifndef PM_RANK_RATES_H
#define PM_RANK_RATES_H

#include "observers/run_facts.h"

#include <pumice/report.h>

struct cJSON;

struct pm_rank_rates;
/* Returns NULL if the process trains alone. The functions below then do nothing. */
struct pm_rank_rates *pm_rank_rates_create(const struct pm_run_facts *run);
void pm_rank_rates_destroy(struct pm_rank_rates **r);
/* Adds the last step. */
void pm_rank_rates_step(struct pm_rank_rates *r, const struct pm_run_facts *run);
/* The number of metrics that pm_rank_rates_take stores. */
size_t pm_rank_rates_values(const struct pm_rank_rates *r);
/* Stores the metrics of the steps since the last call: slowest_rank, exchanged_bytes (sent by this
 * process), and rank_0_images_per_second, .... The names are valid until r is destroyed. */
size_t pm_rank_rates_take(struct pm_rank_rates *r, struct pm_metric *out);
/* Adds `replicas` to an object: rank, host, devices, examples of a step, and images_per_second of
 * each process, by the last take. */
void pm_rank_rates_describe(const struct pm_rank_rates *r, const struct pm_run_facts *run,
                            struct cJSON *out);

#endif
