/* check_finding_init: init.checkpoint "imagenet" without published weights, and small data without
 * pretrained weights. */
#include "jobs/check_findings.h"

#include "checkpoints/published.h"

/* ---- imagenet --------------------------------------------------------------------------- */

static int check_imagenet(struct pm_check *k)
{
    return pm_published_check(k->config);
}
const struct pm_check_finding pm_check_finding_imagenet = { false, check_imagenet };

/* ---- pretrained ------------------------------------------------------------------------- */

/* Below MANY pictures, a start from ImageNet's weights is usually better than initial values. It
 * is not proposed for drawn pictures, for grey ones, and for pictures smaller than SMALLEST, whose
 * details the first layers would not recognise. */
enum { MANY = 10000, SMALLEST = 64 };

static int check_pretrained(struct pm_check *k)
{
    const struct pm_config *c = k->config;
    const struct pm_task_facts *f = &k->e->facts;
    const uint64_t pictures = pm_dataset_get_info(k->e->train)->count;
    const struct pm_published *p;

    if (c->init.checkpoint || c->data.make != PM_MAKE_NONE || pictures >= MANY ||
        f->channels != 3 || f->height < SMALLEST || f->width < SMALLEST ||
        (c->run.folder && pm_checkpoint_newest_step(c->run.folder) >= 0))
        return PM_OK;
    p = pm_published_of(c);
    if (p)
        pm_check_add(k, PM_CHECK_NOTE, "init.checkpoint",
                     "%llu pictures are few: start from ImageNet's weights with "
                     "init.checkpoint=imagenet (%s, which is downloaded)",
                     (unsigned long long)pictures, p->name);
    return PM_OK;
}
const struct pm_check_finding pm_check_finding_pretrained = { true, check_pretrained };
