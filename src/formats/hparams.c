/* hparams: messages of TensorBoard's HParams plugin. */
#include <string.h>

#include "formats/tensorboard.h"
#include "hparams.pb-c.h"

enum { TEXT = 1, NUMBER = 3 };          /* DataType of the plugin's api.proto */
enum { SUCCESS = 1, FAILURE = 2 };      /* its Status */
enum { VALIDATION = 2 };                /* its DatasetType */

static void add_data(struct pm_events *e, const char *tag, const Pm__HparamData *data)
{
    const size_t size = pm__hparam_data__get_packed_size(data);
    uint8_t *content = pm_malloc(size + 1);

    pm__hparam_data__pack(data, content);
    pm_events_plugin(e, tag, "hparams", content, size);
    pm_free(content);
}

static Pm__HparamValue *make_value(struct pm_arena *a, const char *text, double number)
{
    Pm__HparamValue *v = pm_arena_alloc(a, sizeof *v);

    pm__hparam_value__init(v);
    if (text) {
        v->kind_case = PM__HPARAM_VALUE__KIND_STRING_VALUE;
        v->string_value = pm_arena_strdup(a, text);
    } else {
        v->kind_case = PM__HPARAM_VALUE__KIND_NUMBER_VALUE;
        v->number_value = number;
    }
    return v;
}

static Pm__HparamInfo *make_info(struct pm_arena *a, const struct pm_hparam_key *key)
{
    Pm__HparamInfo *info = pm_arena_alloc(a, sizeof *info);
    Pm__HparamInterval *range = pm_arena_alloc(a, sizeof *range);
    Pm__HparamList *list = pm_arena_alloc(a, sizeof *list);

    pm__hparam_info__init(info);
    pm__hparam_interval__init(range);
    pm__hparam_list__init(list);
    info->name = pm_arena_strdup(a, key->name);
    if (key->count == 0) {
        range->min_value = key->low;
        range->max_value = key->high;
        info->type = NUMBER;
        info->domain_case = PM__HPARAM_INFO__DOMAIN_DOMAIN_INTERVAL;
        info->domain_interval = range;
        return info;
    }
    list->values = pm_arena_alloc(a, key->count * sizeof(Pm__HparamValue *));
    list->n_values = key->count;
    for (size_t i = 0; i < key->count; i++)
        list->values[i] = make_value(a, key->texts[i], 0);
    info->type = TEXT;
    info->domain_case = PM__HPARAM_INFO__DOMAIN_DOMAIN_DISCRETE;
    info->domain_discrete = list;
    return info;
}

void pm_events_experiment(struct pm_events *e, const struct pm_hparam_key *keys, size_t count,
                          const char *metric, double began)
{
    struct pm_arena *a = pm_arena_create();
    Pm__HparamData data = PM__HPARAM_DATA__INIT;
    Pm__HparamExperiment experiment = PM__HPARAM_EXPERIMENT__INIT;
    Pm__HparamMetricName name = PM__HPARAM_METRIC_NAME__INIT;
    Pm__HparamMetric info = PM__HPARAM_METRIC__INIT, *infos[] = { &info };

    name.tag = pm_arena_strdup(a, metric);
    info.name = &name;
    info.dataset_type = VALIDATION;
    experiment.time_created_secs = began;
    experiment.hparam_infos = pm_arena_alloc(a, (count + 1) * sizeof(Pm__HparamInfo *));
    experiment.n_hparam_infos = count;
    for (size_t i = 0; i < count; i++)
        experiment.hparam_infos[i] = make_info(a, &keys[i]);
    experiment.metric_infos = infos;
    experiment.n_metric_infos = 1;
    data.data_case = PM__HPARAM_DATA__DATA_EXPERIMENT;
    data.experiment = &experiment;
    add_data(e, "_hparams_/experiment", &data);
    pm_arena_destroy(&a);
}

void pm_events_run(struct pm_events *e, const struct pm_hparam *list, size_t count,
                   const char *group, double began, double ended, bool failed)
{
    struct pm_arena *a = pm_arena_create();
    Pm__HparamData data = PM__HPARAM_DATA__INIT;
    Pm__HparamStart start = PM__HPARAM_START__INIT;
    Pm__HparamEnd end = PM__HPARAM_END__INIT;

    start.hparams = pm_arena_alloc(a, (count + 1) * sizeof(Pm__HparamEntry *));
    start.n_hparams = count;
    for (size_t i = 0; i < count; i++) {
        start.hparams[i] = pm_arena_alloc(a, sizeof(Pm__HparamEntry));
        pm__hparam_entry__init(start.hparams[i]);
        start.hparams[i]->key = pm_arena_strdup(a, list[i].name);
        start.hparams[i]->value = make_value(a, list[i].text, list[i].number);
    }
    start.group_name = pm_arena_strdup(a, group);
    start.start_time_secs = began;
    data.data_case = PM__HPARAM_DATA__DATA_SESSION_START_INFO;
    data.session_start_info = &start;
    add_data(e, "_hparams_/session_start_info", &data);
    end.status = failed ? FAILURE : SUCCESS;
    end.end_time_secs = ended;
    data.data_case = PM__HPARAM_DATA__DATA_SESSION_END_INFO;
    data.session_end_info = &end;
    add_data(e, "_hparams_/session_end_info", &data);
    pm_arena_destroy(&a);
}
