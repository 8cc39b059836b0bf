/* A whole configuration: what is accepted, resolved and printed is accepted again and prints the
 * same. Base files are left out: they would read the fuzzer's machine. */
#include <cjson/cJSON.h>
#include <pumice/config.h>
#include <pumice/data.h>
#include <pumice/net.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pm_open_row nets[64], preprocessings[64];
static const struct pm_open_row optimizers[] = { { "sgd", "", NULL, NULL },
                                                 { "momentum", "", NULL, NULL } };

static struct pm_open_sections open_sections(void)
{
    size_t n, m;
    const struct pm_net_row *const *net = pm_net_rows(&n);
    const struct pm_preprocessing *const *pre = pm_preprocessings(&m);

    for (size_t i = 0; i < n && i < PM_COUNT(nets); i++)
        nets[i] = (struct pm_open_row){ net[i]->name, "", net[i]->opts, net[i]->preprocessing };
    for (size_t i = 0; i < m && i < PM_COUNT(preprocessings); i++)
        preprocessings[i] = (struct pm_open_row){ pre[i]->name, "", pre[i]->opts, NULL };
    return (struct pm_open_sections){ { nets, n }, { optimizers, 2 }, { preprocessings, m } };
}

/* The printed form of the configuration text holds, or NULL when it is refused. */
static char *resolved(const char *text, const struct pm_open_sections *open)
{
    struct pm_config *c = NULL;
    char *printed = NULL;

    if (pm_config_parse("fuzz", text, NULL, 0, open, &c) == PM_OK) {
        cJSON *dump = pm_config_dump(c);
        printed = pm_json_print(dump);
        cJSON_Delete(dump);
    }
    pm_config_destroy(&c);
    return printed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pm_open_sections open;
    char *text = pm_malloc(size + 1);

    if (!open.models.count)
        open = open_sections();
    memcpy(text, data, size);
    text[size] = 0;
    char *first = strstr(text, "base\"") ? NULL : resolved(text, &open);
    if (first) {
        char *second = resolved(first, &open);
        if (!second || strcmp(first, second) != 0)
            __builtin_trap();
        pm_free(second);
    }
    pm_free(first);
    pm_free(text);
    return 0;
}
