/* dataset_info: reads the text files of a data folder. */
#ifndef PM_DATASET_INFO_H
#define PM_DATASET_INFO_H

#include <pumice/data.h>

#include <cjson/cJSON.h>

/* Like pm_dataset_describe; also returns the object in dataset.json, or NULL if the file does not
 * exist. The caller frees it with cJSON_Delete, also after an error. */
int pm_dataset_info_read(struct pm_arena *a, const char *folder, cJSON **json,
                         struct pm_dataset_info *out);

#endif
