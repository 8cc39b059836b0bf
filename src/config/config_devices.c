/* config_devices: the lists `devices` and `replicas`. */
#include "config/config_private.h"

#include <cjson/cJSON.h>
#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

const struct pm_opt pm_config_replica_opts[] = {
    PM_STRING(pm_config_replica, host, NULL,
              "pattern of host names: * stands for any text, ? for one character"),
    PM_INT(pm_config_replica, rank, -1, -1, PM_MOST_PROCESSES - 1,
           "number of a process, instead of host; -1 = none"),
    { .key = "devices", .type = PM_OPT_JSON,
      .offset = offsetof(struct pm_config_replica, devices_json),
      .help = "devices of these processes, as in devices; none = the top-level list" },
    PM_FLOAT(pm_config_replica, share, 0, 0, 1e6,
             "part of the batch of each of these processes, relative to the others; 0 = the sum of "
             "its devices' shares"),
    PM_INT(pm_config_replica, threads, 0, 0, 256,
           "threads of CPU devices that set none; 0 = chosen from the machine"),
    PM_STRING(pm_config_replica, data_folder, NULL, "data.folder on these hosts"),
    { 0 },
};

const char pm_config_replicas_help[] =
    "for training in several processes on hosts that differ: an object for each host or process, "
    "with the keys below. A process uses the first entry that fits. Without one, it uses the "
    "top-level values";

/* ---- devices ----------------------------------------------------------------------------- */

static int read_device(struct pm_config *c, const cJSON *v, const char *path,
                       struct pm_config_device *out)
{
    int err = PM_OK;
    const char *where = pm_arena_printf(c->arena, "%s %s", pm_config_place(c, path), path);

    if (cJSON_IsObject(v))
        return pm_opts_parse(pm_config_device_opts, v, NULL, out, c->arena, where);
    pm_opts_defaults(pm_config_device_opts, out, c->arena);
    if (!cJSON_IsString(v))
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: a name such as \"vulkan:0\" or an object "
                       "{ \"name\": ..., \"share\": ..., \"threads\": ... } is needed",
                       where));
    out->name = pm_arena_strdup(c->arena, v->valuestring);
out:
    return err;
}

/* Reads a list of devices, or one device. path: of the value. */
static int read_list(struct pm_config *c, const cJSON *v, const char *path,
                     const struct pm_config_device **out, int *out_count)
{
    int err = PM_OK, count = 0, shares = 0;
    const bool list = cJSON_IsArray(v);
    struct pm_config_device *to =
        pm_arena_alloc(c->arena, (size_t)(list ? cJSON_GetArraySize(v) + 1 : 1) * sizeof *to);

    for (const cJSON *d = list ? v->child : v; d; d = list ? d->next : NULL) {
        const char *at = list ? pm_arena_printf(c->arena, "%s.%d", path, count) : path;
        PM_TRY(read_device(c, d, at, &to[count++]));
        shares += to[count - 1].share > 0;
    }
    if (count == 0)
        PM_TRY(pm_fail(PM_ECONFIG, "%s %s: the list is empty; [\"auto\"] selects the best one",
                       pm_config_place(c, path), path));
    if (shares != 0 && shares != count)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s %s: %d of %d devices have a share; give one to all or "
                       "to none",
                       pm_config_place(c, path), path, shares, count));
    *out = to;
    *out_count = count;
out:
    return err;
}

/* ---- replicas ---------------------------------------------------------------------------- */

static int read_replica(struct pm_config *c, const cJSON *v, const char *path,
                        struct pm_config_replica *out)
{
    const char *where = pm_arena_printf(c->arena, "%s %s", pm_config_place(c, path), path);
    int err = PM_OK;

    PM_TRY(pm_opts_parse(pm_config_replica_opts, v, NULL, out, c->arena, where));
    if ((out->host != NULL) == (out->rank >= 0))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: set host, a pattern of host names, or rank: one of both",
                       where));
    if (out->devices_json)
        PM_TRY(read_list(c, out->devices_json, pm_arena_printf(c->arena, "%s.devices", path),
                         &out->devices, &out->devices_count));
out:
    return err;
}

static int read_replicas(struct pm_config *c)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(c->tree, "replicas"), *v;
    struct pm_config_replica *out;
    int err = PM_OK;

    if (!list || cJSON_IsNull(list))
        return PM_OK;
    if (!cJSON_IsArray(list))
        return pm_fail(PM_ECONFIG,
                       "%s replicas: a list of objects such as { \"host\": \"big*\", "
                       "\"devices\": [\"vulkan:0\"] } is needed",
                       pm_config_place(c, "replicas"));
    out = pm_arena_alloc(c->arena, (size_t)(cJSON_GetArraySize(list) + 1) * sizeof *out);
    cJSON_ArrayForEach(v, list)
    {
        const char *path = pm_arena_printf(c->arena, "replicas.%d", c->replicas_count);
        PM_TRY(read_replica(c, v, path, &out[c->replicas_count++]));
    }
    c->replicas = out;
out:
    return err;
}

/* Returns the devices with `threads` where they set none. */
static const struct pm_config_device *with_threads(struct pm_config *c, int threads)
{
    struct pm_config_device *out = pm_arena_alloc(c->arena,
                                                  (size_t)c->devices_count * sizeof *out);

    for (int i = 0; i < c->devices_count; i++) {
        out[i] = c->devices[i];
        if (out[i].threads == 0)
            out[i].threads = threads;
    }
    return out;
}

const struct pm_config_replica *pm_config_replica_of(const struct pm_config *c, int rank,
                                                     const char *host)
{
    for (int i = 0; i < c->replicas_count; i++) {
        const struct pm_config_replica *k = &c->replicas[i];

        if (k->rank == rank || (k->host && fnmatch(k->host, host, 0) == 0))
            return k;
    }
    return NULL;
}

void pm_config_for_replica(struct pm_config *c, int rank, const char *host)
{
    const struct pm_config_replica *r = pm_config_replica_of(c, rank, host);

    c->replica = r;
    if (!r)
        return;
    c->top = (struct pm_config_top){ c->devices, c->devices_count, c->data.folder };
    if (r->devices) {
        c->devices = r->devices;
        c->devices_count = r->devices_count;
    }
    if (r->threads > 0)
        c->devices = with_threads(c, r->threads);
    if (r->data_folder)
        c->data.folder = r->data_folder;
}

/* ---- both -------------------------------------------------------------------------------- */

int pm_config_read_devices(struct pm_config *c)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(c->tree, "devices");
    struct pm_config_device *automatic = pm_arena_alloc(c->arena, sizeof *automatic);
    int err = PM_OK;

    pm_opts_defaults(pm_config_device_opts, automatic, c->arena);
    c->devices = automatic;
    c->devices_count = 1;
    if (v && !cJSON_IsNull(v))
        PM_TRY(read_list(c, v, "devices", &c->devices, &c->devices_count));
    PM_TRY(read_replicas(c));
out:
    return err;
}

struct cJSON *pm_config_dump_devices(const struct pm_config_device *list, int count)
{
    cJSON *out = cJSON_CreateArray();

    for (int i = 0; i < count; i++) {
        cJSON *v;

        if (list[i].share == 0 && list[i].threads == 0) {
            v = cJSON_CreateString(list[i].name);
        } else {
            v = cJSON_CreateObject();
            pm_opts_dump(pm_config_device_opts, &list[i], v, false);
        }
        cJSON_AddItemToArray(out, v);
    }
    return out;
}

struct cJSON *pm_config_dump_replicas(const struct pm_config *c)
{
    cJSON *out = cJSON_CreateArray();

    for (int i = 0; i < c->replicas_count; i++) {
        const struct pm_config_replica *r = &c->replicas[i];
        cJSON *v = cJSON_CreateObject();

        pm_opts_dump(pm_config_replica_opts, r, v, false);
        if (r->devices)
            cJSON_ReplaceItemInObjectCaseSensitive(
                v, "devices", pm_config_dump_devices(r->devices, r->devices_count));
        cJSON_AddItemToArray(out, v);
    }
    return out;
}

/* Describes a value that is a list of devices, or one name. */
static void describe_devices(cJSON *v)
{
    cJSON *types = cJSON_AddArrayToObject(v, "type"), *items;

    cJSON_AddItemToArray(types, cJSON_CreateString("array"));
    cJSON_AddItemToArray(types, cJSON_CreateString("string"));
    items = cJSON_AddObjectToObject(v, "items");
    types = cJSON_AddArrayToObject(items, "type");
    cJSON_AddItemToArray(types, cJSON_CreateString("string"));
    cJSON_AddItemToArray(types, cJSON_CreateString("object"));
    pm_opts_schema(pm_config_device_opts, cJSON_AddObjectToObject(items, "properties"));
    cJSON_AddBoolToObject(items, "additionalProperties", false);
}

void pm_config_schema_devices(struct cJSON *properties)
{
    cJSON *devices = cJSON_AddObjectToObject(properties, "devices");
    cJSON *replicas = cJSON_AddObjectToObject(properties, "replicas"), *items, *of_entry;

    cJSON_AddStringToObject(devices, "description", "devices; each one runs a clone of the net");
    describe_devices(devices);
    cJSON_AddStringToObject(replicas, "description", pm_config_replicas_help);
    cJSON_AddStringToObject(replicas, "type", "array");
    items = cJSON_AddObjectToObject(replicas, "items");
    cJSON_AddStringToObject(items, "type", "object");
    of_entry = cJSON_AddObjectToObject(items, "properties");
    pm_opts_schema(pm_config_replica_opts, of_entry);
    describe_devices(cJSON_GetObjectItemCaseSensitive(of_entry, "devices"));
    cJSON_AddBoolToObject(items, "additionalProperties", false);
}
