/* input.buckets: the sizes of training pictures. */
#include "config/config_private.h"

#include <cjson/cJSON.h>

enum { MOST_BUCKETS = 16, MOST_SIDE = 16384 };

static int fail(const struct pm_config *c, const char *path, const char *why)
{
    return pm_fail(PM_ECONFIG, "%s %s: %s", pm_config_place(c, path), path, why);
}

static bool read_side(const cJSON *v, int *out)
{
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 1 && v->valuedouble <= MOST_SIDE) ||
        v->valuedouble != (int)v->valuedouble)
        return false;
    *out = (int)v->valuedouble;
    return true;
}

/* Reads a side, or [height, width]. */
static bool read_size(const cJSON *v, int out[2])
{
    if (!cJSON_IsArray(v))
        return read_side(v, &out[0]) && read_side(v, &out[1]);
    return cJSON_GetArraySize(v) == 2 && read_side(cJSON_GetArrayItem(v, 0), &out[0]) &&
           read_side(cJSON_GetArrayItem(v, 1), &out[1]);
}

static int find(int (*list)[2], int count, int height, int width)
{
    for (int i = 0; i < count; i++)
        if (list[i][0] == height && list[i][1] == width)
            return i;
    return -1;
}

/* Moves the size with the most pixels, the first of equal ones, to the front. */
static void put_largest_first(int (*list)[2], int count)
{
    int at = 0;

    for (int i = 1; i < count; i++)
        if (list[i][0] * list[i][1] > list[at][0] * list[at][1])
            at = i;
    const int height = list[at][0], width = list[at][1];
    for (int i = at; i > 0; i--)
        list[i][0] = list[i - 1][0], list[i][1] = list[i - 1][1];
    list[0][0] = height, list[0][1] = width;
}

static int read_list(const struct pm_config *c, const cJSON *given, int (*list)[2], int *count)
{
    const cJSON *v;

    cJSON_ArrayForEach(v, given)
    {
        const char *path = pm_arena_printf(c->arena, "input.buckets.%d", *count);
        int *size = list[*count];

        if (!read_size(v, size))
            return fail(c, path, "a side or [height, width] is needed, 1..16384 pixels each");
        if (find(list, *count, size[0], size[1]) >= 0)
            return fail(c, path, pm_arena_printf(c->arena, "%d x %d is listed twice: remove one",
                                                 size[0], size[1]));
        ++*count;
    }
    return PM_OK;
}

/* Checks that input.size is one of the sizes. */
static int check_size(const struct pm_config *c, int (*list)[2], int count)
{
    const struct pm_ints size = c->input.size;

    if (size.count == 0 || find(list, count, size.v[0], size.v[size.count - 1]) >= 0)
        return PM_OK;
    return fail(c, "input.size",
                pm_arena_printf(c->arena, "%d x %d is none of input.buckets: add it to them, or "
                                "set input.size to null", size.v[0], size.v[size.count - 1]));
}

int pm_config_read_buckets(struct pm_config *c)
{
    static const char key[] = "input.buckets";
    const cJSON *input = cJSON_GetObjectItemCaseSensitive(c->tree, "input");
    const cJSON *given = cJSON_GetObjectItemCaseSensitive(input, "buckets");
    int (*list)[2], count = 0, err = PM_OK;

    if (!given || cJSON_IsNull(given))
        return PM_OK;
    if (!cJSON_IsArray(given) || cJSON_GetArraySize(given) == 0)
        return fail(c, key, "a list of sizes is needed, as in [[321, 321], [321, 513]]");
    if (cJSON_GetArraySize(given) > MOST_BUCKETS)
        return fail(c, key, pm_arena_printf(c->arena, "%d sizes; at most %d are possible, because "
                                            "each is planned before the first step",
                                            cJSON_GetArraySize(given), MOST_BUCKETS));
    list = pm_arena_alloc(c->arena, (size_t)cJSON_GetArraySize(given) * sizeof *list);
    PM_TRY(read_list(c, given, list, &count));
    PM_TRY(check_size(c, list, count));
    put_largest_first(list, count);
    c->buckets = (const int (*)[2])list;
    c->buckets_count = count;
out:
    return err;
}
