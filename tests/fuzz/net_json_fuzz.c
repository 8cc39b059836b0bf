/* A net from a list of layers. An accepted net is written as a list, which must give the same
 * number of nodes and variables. */
#include <pumice/net.h>

#include <cjson/cJSON.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pm_net *read_net(const cJSON *list, int *err)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(2, 16, 12, 4), PM_F32);

    *err = pm_net_from_json(net, images, list, "fuzz", &heads);
    return net;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cJSON *list = cJSON_ParseWithLength((const char *)data, size);
    int err, again;

    if (!list)
        return 0;
    struct pm_net *a = read_net(list, &err);
    if (err == PM_OK) {
        cJSON *out = pm_net_to_json(a);
        struct pm_net *b = read_net(out, &again);
        if (again != PM_OK || a->count != b->count || a->var_count != b->var_count)
            __builtin_trap();
        pm_net_destroy(&b);
        cJSON_Delete(out);
    }
    pm_net_destroy(&a);
    cJSON_Delete(list);
    return 0;
}
