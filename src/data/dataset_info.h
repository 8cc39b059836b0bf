/* dataset_info: what the text files of a data folder say. */
#ifndef PM_DATASET_INFO_H
#define PM_DATASET_INFO_H

#include <pumice/data.h>

#include <cjson/cJSON.h>

/* pm_dataset_describe, which also gives the object in dataset.json (may be NULL: there is no such file);
 * freed with cJSON_Delete, also after an error. */
int pm_dataset_info_read(struct pm_arena *a, const char *folder, cJSON **json,
                         struct pm_dataset_info *out);

#endif
