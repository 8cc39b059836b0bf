/* Label maps in both forms. The printed form of a map reads as the same map. */
#include <pumice/objects.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const char *a, const char *b)
{
    return (!a && !b) || (a && b && !strcmp(a, b));
}

static void check(struct pm_arena *a, const struct pm_label_map *map)
{
    struct pm_str text = { 0 };
    struct pm_label_map again;

    pm_label_map_print(map, &text);
    if (pm_label_map_parse(a, text.text, "own", &again) < 0 || again.count != map->count)
        __builtin_trap();
    for (int i = 0; i < map->count; i++) {
        const struct pm_label_item *x = &map->item[i], *y = &again.item[i];
        if (x->id != y->id || !same(x->name, y->name) || !same(x->display_name, y->display_name))
            __builtin_trap();
        for (int k = 0; k < y->points_count; k++)
            if (!same(x->points[k], y->points[k]))
                __builtin_trap();
        if (pm_label_map_find(map, x->name) < x->id || pm_label_map_item(map, x->id) != x)
            __builtin_trap();
    }
    pm_str_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pm_arena *a = pm_arena_create();
    char *text = pm_malloc(size + 1);
    struct pm_label_map map;

    memcpy(text, data, size);
    text[size] = '\0';
    if (pm_label_map_parse(a, text, "fuzz", &map) == PM_OK)
        check(a, &map);
    pm_free(text);
    pm_arena_destroy(&a);
    return 0;
}
