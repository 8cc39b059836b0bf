/* second_stage: builds the second stage of a two-stage detector from its parts. */
#include "nets/second_stage.h"

#include <cjson/cJSON.h>
#include <string.h>

struct pm_node *pm_second_stage_map(const struct pm_second_stage *s)
{
    return pm_first_stage_map(s->ssd.net);
}

int pm_second_stage_numbers(const struct pm_second_stage *s)
{
    const struct pm_shape boxes = s->regions->boxes->out_shape;

    return boxes.dim[boxes.rank - 1];
}

bool pm_second_stage_upright(const struct pm_second_stage *s, const char *key, const char *what)
{
    struct pm_net *net = s->ssd.net;

    if (pm_second_stage_numbers(s) != 4 && !net->error)
        net->error = pm_fail(PM_ECONFIG, "model.second_stage_box_predictor.%s, but model.boxes is "
                             "rotated: %s", key, what);
    return !net->error;
}

#define SCOPE "SecondStageFeatureExtractor"

/* Builds second_stage_layers on x. An empty list has no layers. */
static struct pm_node *listed(const struct pm_second_stage *s, struct pm_node *x)
{
    const cJSON *list = s->ssd.o->second_stage_layers;

    return cJSON_IsArray(list) && !list->child
               ? x
               : pm_stage_list_build(s->ssd.net, SCOPE, "second_stage_layers", list, "crops", x);
}

struct pm_node *pm_second_stage_features(const struct pm_second_stage *s, struct pm_node *x)
{
    struct pm_net *net = s->ssd.net;
    const int first = net->var_count;

    if (net->error)
        return x;
    if (pm_stage_list_given(s->ssd.o->second_stage_layers))
        return listed(s, x);
    net->prefix = SCOPE;
    x = s->ssd.form->extractor->second(net, x, &s->ssd.nets);
    net->prefix = NULL;
    pm_ssd_clear_decay(net, first);
    return x;
}

struct pm_node *pm_second_stage_crop(const struct pm_second_stage *s, const char *name,
                                     struct pm_node *x, const char *spec)
{
    return pm_net_add_many(s->ssd.net, name,
                           (struct pm_node *[]){ x, s->regions->boxes, s->regions->count }, 3, "%s",
                           spec);
}

/* Reads the settings of convolutions: the defaults with the members of `given`. */
static void read_hyperparams(struct pm_net *net, const char *option, const char *defaults,
                             const cJSON *given, struct pm_hyperparams *out)
{
    cJSON *own = cJSON_Parse(defaults);
    cJSON *object = pm_ssd_merged(net, option, own, given);

    pm_hyperparams_read(net, object, pm_arena_printf(net->arena, "model.%s", option), out);
    cJSON_Delete(object);
    cJSON_Delete(own);
}

void pm_second_stage_build(const struct pm_ssd_form *form, struct pm_net *net,
                           const struct pm_regions *regions, int num_classes,
                           const struct pm_ssd_options *o, struct pm_heads *heads)
{
    static const struct pm_second_predictor_row *const rows[] = { &pm_second_predictor_mask_rcnn,
                                                                  &pm_second_predictor_rfcn };
    static const char *const also[] = { "type", NULL };
    const char *const types[] = { rows[0]->type, rows[1]->type };
    struct pm_second_predictor p = { 0 };
    struct pm_second_stage s = {
        .ssd = { .net = net, .form = form, .o = o, .nets = pm_ssd_nets(o) }, .regions = regions,
        .classes = num_classes, .heads = heads,
    };
    cJSON *defaults = cJSON_Parse("{\"type\": \"mask_rcnn\"}");
    cJSON *object = pm_ssd_merged(net, "second_stage_box_predictor", defaults,
                                  o->second_stage_box_predictor);
    const int type = pm_ssd_type(net, "second_stage_box_predictor", object, PM_COUNT(types), types);

    s.ssd.nets.override = form->override;
    if (!net->error)
        net->error = pm_opts_parse(rows[type]->opts, object, also, &p, net->arena,
                                   "model.second_stage_box_predictor");
    if (!net->error) {
        read_hyperparams(net, "second_stage_box_predictor.hyperparams", rows[type]->hyperparams,
                         p.hyperparams, &p.h);
        read_hyperparams(net, "second_stage_box_predictor.conv_hyperparams",
                         "{\"activation\": \"relu\", \"initializer\": \"truncated(0.01)\", "
                         "\"regularize\": false, \"batch_norm\": false}",
                         p.conv_hyperparams, &p.conv);
    }
    if (!net->error)
        rows[type]->build(&s, &p);
    cJSON_Delete(object);
    cJSON_Delete(defaults);
}
