/* check_finding_init: init.checkpoint "imagenet" without published weights, and small data without
 * pretrained weights. */
#include "jobs/check_findings.h"

#include "checkpoints/published.h"

#include <cjson/cJSON.h>

/* ---- imagenet --------------------------------------------------------------------------- */

static int check_imagenet(struct pm_check *k)
{
    return pm_published_check(k->config);
}
const struct pm_check_finding pm_check_finding_imagenet = { false, check_imagenet };

/* ---- pretrained ------------------------------------------------------------------------- */

/* Below MANY pictures, a start from ImageNet's weights is usually better than initial values. It
 * is not proposed for other widths of the net, for drawn pictures, for grey ones, and for pictures
 * smaller than SMALLEST, whose details the first layers would not recognise. The row few_photos
 * includes it for detectors. */
enum { MANY = 10000, SMALLEST = 64 };

/* Whether an option changes the net's layers, so that published weights do not fit. */
static bool is_changed(const struct pm_config *c)
{
    static const char *const keys[] = { "depth_multiplier", "first_stage_layers",
                                        "second_stage_layers" };
    const struct pm_net_row *row = c->model.name ? pm_net_row_find(c->model.name) : NULL;
    void *cfg = pm_calloc(1, row ? row->cfg_size + 1 : 1);
    cJSON *changes = cJSON_CreateObject();
    bool is = false;

    if (row && row->opts && pm_config_read(c, "model", row->opts, cfg) == PM_OK)
        pm_opts_dump(row->opts, cfg, changes, true);
    for (size_t i = 0; i < PM_COUNT(keys); i++)
        is |= cJSON_HasObjectItem(changes, keys[i]);
    cJSON_Delete(changes);
    pm_free(cfg);
    return is;
}

const struct pm_published *pm_check_published(const struct pm_check *k)
{
    const struct pm_config *c = k->config;
    const struct pm_task_facts *f = &k->e->facts;

    if (is_changed(c) || c->data.make != PM_MAKE_NONE || f->channels != 3 || f->height < SMALLEST ||
        f->width < SMALLEST || (c->run.folder && pm_checkpoint_newest_step(c->run.folder) >= 0))
        return NULL;
    return pm_published_of(c);
}

static int check_pretrained(struct pm_check *k)
{
    const uint64_t pictures = pm_dataset_get_info(k->e->train)->count;
    const struct pm_published *p = pm_check_published(k);

    if (p && !k->config->init.checkpoint && pictures < MANY && !pm_check_few_photos(k))
        pm_check_add(k, PM_CHECK_NOTE, "init.checkpoint",
                     "%llu pictures are few: start from ImageNet's weights with "
                     "init.checkpoint=imagenet (%s, which is downloaded)",
                     (unsigned long long)pictures, p->name);
    return PM_OK;
}
const struct pm_check_finding pm_check_finding_pretrained = { true, check_pretrained };
