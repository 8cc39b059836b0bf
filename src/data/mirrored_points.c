/* mirrored_points: pairs keypoints by their names. */
#include "data/mirrored_points.h"

#include <string.h>

/* Returns whether b is a with one word exchanged for the other. */
static bool exchanged(const char *a, const char *b, const char *word, const char *other)
{
    const char *at = strstr(a, word);
    const size_t before = at ? (size_t)(at - a) : 0;

    return at && !strncmp(a, b, before) && !strncmp(b + before, other, strlen(other)) &&
           !strcmp(at + strlen(word), b + before + strlen(other));
}

bool pm_mirrored_by_name(const char *const *names, int count, int *out)
{
    bool any = false;

    for (int k = 0; k < count; k++)
        out[k] = k;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < count; i++)
            if (names[k] && names[i] && out[k] == k && out[i] == i &&
                exchanged(names[k], names[i], "left", "right")) {
                out[k] = i;
                out[i] = k;
                any = true;
            }
    return any;
}

bool pm_mirrored_by_map(const struct pm_label_map *map, int count, int *out)
{
    for (int i = 0; map && i < map->count; i++)
        if (map->item[i].points_count == count &&
            pm_mirrored_by_name(map->item[i].points, count, out))
            return true;
    return false;
}
