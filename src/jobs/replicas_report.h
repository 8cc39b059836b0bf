/* replicas_report: what pumice replicas prints. */
#ifndef PM_REPLICAS_REPORT_H
#define PM_REPLICAS_REPORT_H

#include <pumice/config.h>
#include <pumice/replicas.h>

struct cJSON;

/* Describes the processes of a training. All ranks call it with the same config; r NULL: this
 * process is alone. measured: also measures their connections, the exchange of the net's gradients,
 * and steps. report, filled by rank 0: ranks (rank, host, cores, cores_of, devices, data_folder,
 * data_there, version); if measured: links (ranks, latency_us, megabytes_per_second), and step
 * (gradients, bytes, wire, exchange_seconds, alone_seconds, seconds, hidden). alone_seconds: of a
 * step of each process's part of the batch without an exchange; of the slowest process. seconds: of
 * a step with it. hidden: the share of exchange_seconds by which a step does not get longer; null
 * if the exchange is too short for a comparison. With one process the step has only gradients,
 * bytes and alone_seconds. Steps take random pictures. Errors are those of a training's start, but
 * the data may be missing if the config states the classes. */
int pm_replicas_report(const struct pm_config *c, struct pm_replicas *r, bool measured,
                       struct cJSON *report);

#endif
