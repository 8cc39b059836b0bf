/* yaml_entries, internal to data/convert: reads a small YAML file, such as a data.yaml of YOLO, as
 * a list of entries. It uses libyaml, which is loaded when it is needed. */
#ifndef PUMICE_DATA_CONVERT_YAML_ENTRIES_H
#define PUMICE_DATA_CONVERT_YAML_ENTRIES_H

#include <pumice/base.h>

/* "names: [cat, dog]" gives two entries names/0 and names/1; "names: {0: cat}" gives names/0;
 * "path: x" gives one entry path with sub "". Entries in deeper lists and maps are left out. The
 * texts are in the arena. */
struct pm_yaml_entry {
    const char *key, *sub, *value;
    unsigned line;
};
struct pm_yaml {
    const char *path;
    struct pm_yaml_entry *entry; /* [count], owned: pm_yaml_free */
    size_t count, capacity;
};
enum { PM_MOST_YAML = 4 << 20 }; /* bytes */
/* PM_EDATA with the line for: a file that is no YAML or larger than PM_MOST_YAML, whose top is not
 * a map, with aliases, or more than 64 levels deep. PM_EFAIL if libyaml is missing. The caller
 * frees out, also after an error. */
int pm_yaml_read(struct pm_arena *a, const char *path, struct pm_yaml *out);
void pm_yaml_free(struct pm_yaml *y);
/* The value of a key without list or map, or NULL. */
const char *pm_yaml_value(const struct pm_yaml *y, const char *key);

#endif
