/* ssd_build: builds a one-stage detector from its parts; ssd.h names them. */
#include "nets/box_predictor.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* ---- options that are objects ---------------------------------------------------------------- */

static bool same_type(const cJSON *a, const cJSON *b)
{
    a = cJSON_GetObjectItemCaseSensitive(a, "type");
    b = cJSON_GetObjectItemCaseSensitive(b, "type");
    return !b || (cJSON_IsString(a) && cJSON_IsString(b) &&
                  strcmp(a->valuestring, b->valuestring) == 0);
}

/* Puts the members of `given` into object. */
static void merge(cJSON *object, const cJSON *given)
{
    const cJSON *v;

    cJSON_ArrayForEach(v, given) {
        cJSON *own = cJSON_GetObjectItemCaseSensitive(object, v->string);

        if (cJSON_IsNull(v))
            continue;
        if (cJSON_IsObject(own) && cJSON_IsObject(v))
            merge(own, v);
        else if (own)
            cJSON_ReplaceItemInObjectCaseSensitive(object, v->string, cJSON_Duplicate(v, true));
        else
            cJSON_AddItemToObject(object, v->string, cJSON_Duplicate(v, true));
    }
}

cJSON *pm_ssd_merged(struct pm_net *net, const char *option, const cJSON *defaults,
                     const cJSON *given)
{
    cJSON *object;

    if (given && !cJSON_IsObject(given) && !cJSON_IsNull(given) && !net->error)
        net->error = pm_fail(PM_ECONFIG, "model.%s: must be an object {\"key\": value, ...}, or "
                             "null for the net's own", option);
    object = same_type(defaults, given) ? cJSON_Duplicate(defaults, true) : cJSON_CreateObject();
    if (cJSON_IsObject(given))
        merge(object, given);
    return object;
}

int pm_ssd_type(struct pm_net *net, const char *option, const cJSON *object, size_t count,
                const char *const *types)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(object, "type");
    struct pm_str list = { 0 };

    for (size_t i = 0; i < count; i++) {
        if (cJSON_IsString(type) && strcmp(type->valuestring, types[i]) == 0) {
            pm_str_free(&list);
            return (int)i;
        }
        pm_str_add(&list, "%s\"%s\"", i == 0 ? "" : i + 1 < count ? ", " : " or ", types[i]);
    }
    if (!net->error)
        net->error = pm_fail(PM_ECONFIG, "model.%s.type: must be %s", option, list.text);
    pm_str_free(&list);
    return -1;
}

/* ---- the parts ------------------------------------------------------------------------------- */

void pm_ssd_clear_decay(struct pm_net *net, int first)
{
    for (int i = first; i < net->var_count; i++)
        net->vars[i]->regularize = false;
}

/* Builds the list of layers in the extractor's place, below its scope. */
static bool extract_list(struct pm_ssd *s)
{
    const cJSON *list = s->o->first_stage_layers;

    if (!pm_stage_list_given(list))
        return false;
    s->listed = pm_stage_list_build(s->net, pm_pyramid_scope(s), "first_stage_layers", list,
                                    "images", s->images);
    return true;
}

/* Builds the extractor, below its scope. */
static void extract(struct pm_ssd *s)
{
    const struct pm_extractor *e = s->form->extractor;
    const struct pm_hyperparams *h = &s->hyperparams;
    const struct pm_nets_override override = {
        h->initializer, pm_hyperparams_activation(h), e->own_scale || h->batch_norm_scale,
        e->own_scale || h->batch_norm_center,
    };
    const bool overrides = s->o->override_base_feature_extractor_hyperparams;
    const int first = s->net->var_count;
    struct pm_nets_options o = s->nets;

    o.override = overrides ? &override : s->form->override;
    o.regularize_depthwise = overrides ? h->regularize : s->form->regularize_depthwise;
    if (overrides && !e->own_norm && !isnan(h->batch_norm_decay))
        o.batch_norm_decay = h->batch_norm_decay;
    if (overrides && !e->own_norm && !isnan(h->batch_norm_epsilon))
        o.batch_norm_epsilon = h->batch_norm_epsilon;
    s->net->prefix = pm_pyramid_scope(s);
    e->build(s->net, s->images, &o);
    s->net->prefix = NULL;
    if (s->form->pyramid == PM_SSD_FIRST_STAGE)
        pm_ssd_clear_decay(s->net, first);
}

static void add_number(cJSON *object, const char *key, int value)
{
    if (!cJSON_HasObjectItem(object, key))
        cJSON_AddNumberToObject(object, key, value);
}

/* The strides of a grid that a config leaves open: those of the first stage's map. */
static void add_strides(const struct pm_ssd *s, cJSON *object)
{
    static const char *const keys[] = { "height_stride", "width_stride" };

    for (int axis = 0; axis < 2; axis++) {
        int stride = s->o->first_stage_features_stride;

        if (cJSON_HasObjectItem(object, keys[axis]))
            continue;
        if (s->listed)
            stride = pm_stage_list_stride(s->net, pm_pyramid_scope(s), s->o->first_stage_layers,
                                          s->images, s->listed, axis);
        if (stride > 0)
            add_number(object, keys[axis], stride);
    }
}

/* Unless the config gives others, the anchors of a top-down pyramid have its levels, and those of a
 * first stage the stride of its map. */
static void add_anchor_defaults(const struct pm_ssd *s, const char *type, cJSON *object)
{
    if (s->form->pyramid == PM_SSD_TOP_DOWN && strcmp(type, "multiscale") == 0) {
        add_number(object, "min_level", s->o->fpn_min_level);
        add_number(object, "max_level", s->o->fpn_max_level);
    }
    if (s->form->pyramid == PM_SSD_FIRST_STAGE && strcmp(type, "grid") == 0)
        add_strides(s, object);
}

/* Six directions, 30 degrees apart: an object is at most 15 degrees from one of them. None is at a
 * quarter turn, where the angle of a box jumps. */
#define ANGLES "[-1.308997, -0.785398, -0.261799, 0.261799, 0.785398, 1.308997]"

/* Completes anchors of rotated boxes where the config leaves them open. The long side of a rotated
 * box is its width, and a quarter turn makes ratio 2 of ratio 0.5. So the net's own ratios below 1
 * are left out, and the first map does not have the three fixed anchors, which include 0.5. */
static void add_angles(const struct pm_ssd *s, const char *type, cJSON *object)
{
    static const char reduce[] = "reduce_boxes_in_lowest_layer";
    cJSON *ratios = cJSON_GetObjectItemCaseSensitive(object, "aspect_ratios");
    const bool listed = strcmp(type, "flexible_grid") == 0; /* a ratio for each size */

    if (!cJSON_HasObjectItem(object, "angles"))
        cJSON_AddItemToObject(object, "angles", cJSON_Parse(ANGLES));
    if (strcmp(type, "ssd") == 0 && !cJSON_HasObjectItem(object, reduce))
        cJSON_AddFalseToObject(object, reduce);
    if (listed || cJSON_HasObjectItem(s->o->anchors, "aspect_ratios"))
        return;
    for (int i = cJSON_GetArraySize(ratios) - 1; i >= 0; i--)
        if (cJSON_GetArrayItem(ratios, i)->valuedouble < 1)
            cJSON_DeleteItemFromArray(ratios, i);
}

static struct pm_node *add_anchors(struct pm_ssd *s)
{
    static const char *const types[] = { "ssd", "multiscale", "grid", "flexible_grid" };
    struct pm_node *inputs[1 + PM_MAX_LEVELS] = { s->images }, *anchors = NULL;
    const bool rotated = s->net->ends.rotated_boxes && s->form->rotated_anchors;
    cJSON *defaults = cJSON_Parse(rotated ? s->form->rotated_anchors : s->form->anchors);
    cJSON *object = pm_ssd_merged(s->net, "anchors", defaults, s->o->anchors);
    const int type = pm_ssd_type(s->net, "anchors", object, PM_COUNT(types), types);

    for (int i = 0; i < s->count; i++)
        inputs[1 + i] = s->maps[i];
    if (type >= 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(object, "type");
        add_anchor_defaults(s, types[type], object);
        if (s->net->ends.rotated_boxes)
            add_angles(s, types[type], object);
        anchors = pm_net_add_json(s->net, "anchors", inputs, 1 + s->count,
                                  pm_arena_printf(s->net->arena, "%s_anchors", types[type]),
                                  object, NULL, "model.anchors");
    }
    cJSON_Delete(object);
    cJSON_Delete(defaults);
    return anchors;
}

static void check_clip_range(struct pm_net *net, const struct pm_predictor *p)
{
    const struct pm_floats range = p->box_encodings_clip_range;

    if (!net->error && range.count && (range.count != 2 || range.v[0] > range.v[1]))
        net->error = pm_fail(PM_ECONFIG, "model.box_predictor.box_encodings_clip_range: two "
                             "numbers are needed, the least and the greatest, or none");
}

static void add_predictor(struct pm_ssd *s)
{
    static const struct pm_predictor_row *const rows[] = { &pm_predictor_convolutional,
                                                           &pm_predictor_shared };
    static const char *const also[] = { "type", NULL };
    const char *const types[] = { rows[0]->type, rows[1]->type };
    struct pm_predictor p = { 0 };
    struct pm_net *net = s->net;
    cJSON *defaults = cJSON_Parse(s->form->box_predictor);
    cJSON *object = pm_ssd_merged(net, "box_predictor", defaults, s->o->box_predictor);
    const int type = pm_ssd_type(net, "box_predictor", object, PM_COUNT(types), types);

    if (!net->error)
        net->error = pm_opts_parse(rows[type]->opts, object, also, &p, net->arena,
                                   "model.box_predictor");
    cJSON *h = pm_ssd_merged(net, "box_predictor.hyperparams", s->hyperparams_json, p.hyperparams);
    pm_hyperparams_read(net, h, "model.box_predictor.hyperparams", &p.h);
    check_clip_range(net, &p);
    if (!net->error)
        rows[type]->build(s, &p);
    cJSON_Delete(h);
    cJSON_Delete(object);
    cJSON_Delete(defaults);
}

void pm_ssd_finish(struct pm_ssd *s, struct pm_heads *heads)
{
    struct pm_net *net = s->net;

    if (!net->error)
        s->anchors = add_anchors(s);
    if (!net->error)
        add_predictor(s);
    for (int k = 1; k <= s->count && !net->error; k++) {
        const char *boxes = pm_arena_printf(net->arena, "boxes_%d", k);
        const char *classes = pm_arena_printf(net->arena, "classes_%d", k);

        pm_heads_add(net, heads, boxes, pm_net_find(net, boxes));
        pm_heads_add(net, heads, classes, pm_net_find(net, classes));
    }
    if (!net->error)
        pm_heads_add(net, heads, "anchors", s->anchors);
}

struct pm_nets_options pm_ssd_nets(const struct pm_ssd_options *o)
{
    struct pm_nets_options nets = o->nets;

    nets.divisible_by = 8;
    nets.separable_conv = true; /* of inception_v2 */
    return nets;
}

void pm_ssd_build(const struct pm_ssd_form *form, struct pm_net *net, struct pm_node *images,
                  int num_classes, const struct pm_ssd_options *o, struct pm_heads *heads)
{
    static void (*const pyramids[])(struct pm_ssd *) = {
        [PM_SSD_EXTRA] = pm_pyramid_extra, [PM_SSD_TOP_DOWN] = pm_pyramid_top_down,
        [PM_SSD_POOLING] = pm_pyramid_pooling, [PM_SSD_RETINANET] = pm_pyramid_retinanet,
        [PM_SSD_FIRST_STAGE] = pm_pyramid_first_stage,
    };
    cJSON *defaults = cJSON_Parse(form->hyperparams);
    struct pm_ssd s = {
        .net = net, .form = form, .o = o, .nets = pm_ssd_nets(o), .images = images,
        .columns = form->pyramid == PM_SSD_FIRST_STAGE ? 2 : num_classes + o->background_class,
        .hyperparams_json = pm_ssd_merged(net, "hyperparams", defaults, o->hyperparams),
    };

    s.scope = pm_arena_printf(net->arena, "%s/%s/", pm_pyramid_scope(&s), form->extractor->scope);
    s.nets.output_stride = o->first_stage_features_stride;
    s.nets.narrow_end = form->pyramid == PM_SSD_TOP_DOWN && o->use_depthwise;
    s.nets.short_end = form->pyramid == PM_SSD_POOLING || form->pyramid == PM_SSD_FIRST_STAGE;
    pm_hyperparams_read(net, s.hyperparams_json, "model.hyperparams", &s.hyperparams);
    if (!extract_list(&s) &&
        pm_nets_fits(net, form->name, images, form->least ? form->least : form->extractor->least))
        extract(&s);
    if (!net->error)
        pyramids[form->pyramid](&s);
    pm_ssd_finish(&s, heads);
    cJSON_Delete(s.hyperparams_json);
    cJSON_Delete(defaults);
}
