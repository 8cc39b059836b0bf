/* detection_stages: options of nets that propose regions (faster_rcnn): how many stages are
 * trained, which boxes the first stage proposes, and which of them train the second one. Names and
 * defaults are those of TensorFlow's Object Detection API (protos/faster_rcnn.proto). */
#include "tasks/detection/detection.h"

#include <cjson/cJSON.h>

const struct pm_opt pm_detection_proposals_opts[] = {
    PM_FLOAT(pm_detection_proposals, score_threshold, 0, 0, 1,
             "drop proposals whose score is not above this"),
    PM_FLOAT(pm_detection_proposals, iou_threshold, 0.7, 0, 1,
             "drop a proposal whose IoU with a better one is above this"),
    PM_INT(pm_detection_proposals, max_proposals, 300, 1, 10000, "most proposals of a picture"),
    { 0 },
};

const struct pm_opt pm_detection_minibatch_opts[] = {
    PM_INT(pm_detection_minibatch, batch_size, 256, 1, 1000000,
           "most anchors of a picture that count"),
    PM_FLOAT(pm_detection_minibatch, positive_fraction, 0.5, 0, 1,
             "share of batch_size that may be matched; negative anchors fill the rest"),
    { 0 },
};

const struct pm_opt pm_detection_proposal_sampler_opts[] = {
    PM_INT(pm_detection_proposal_sampler, batch_size, 64, 1, 10000,
           "most proposals of a picture that train the second stage"),
    PM_FLOAT(pm_detection_proposal_sampler, positive_fraction, 0.25, 0, 1,
             "share of batch_size that may be objects; background fills the rest"),
    PM_FLOAT(pm_detection_proposal_sampler, iou_threshold, 0.5, 1e-3, 1,
             "a proposal is an object if its IoU with a true box is at least this"),
    PM_BOOL(pm_detection_proposal_sampler, append_truth, false,
            "the true boxes are proposals, too, as in torchvision"),
    { 0 },
};

const struct pm_opt pm_detection_second_loss_opts[] = {
    PM_FLOAT(pm_detection_second_loss, classification_weight, 1, 0, 1e6,
             "weight of the loss of the classes"),
    PM_FLOAT(pm_detection_second_loss, localization_weight, 1, 0, 1e6,
             "weight of the loss of the boxes"),
    PM_FLOAT(pm_detection_second_loss, mask_weight, 1, 0, 1e6, "weight of the loss of the masks"),
    PM_FLOAT(pm_detection_second_loss, keypoint_weight, 1, 0, 1e6,
             "weight of the loss of the keypoints"),
    PM_FLOAT(pm_detection_second_loss, logit_scale, 1, 1e-6, 1e6, "divisor of the logits"),
    { 0 },
};

bool pm_detection_has_stages(const struct pm_config *c)
{
    return pm_detection_of_net(c, "model.anchors_outside") != NULL;
}

static int check_stages(const struct pm_config *c, const struct pm_detection_model *m,
                        const struct pm_task *t)
{
    const char *place = pm_detection_place(c, "model.number_of_stages");

    if (!pm_detection_has_stages(c) && m->number_of_stages != PM_UNSET)
        return pm_fail(PM_ECONFIG, "%s: %d, but only faster_rcnn nets have stages: remove the key",
                       place, m->number_of_stages);
    if (!pm_detection_has_stages(c) && m->proposals)
        return pm_fail(PM_ECONFIG, "%s: only faster_rcnn nets propose regions: remove the key",
                       pm_detection_place(c, "model.proposals"));
    if (m->number_of_stages == 1 && !t->data.class_agnostic)
        return pm_fail(PM_ECONFIG, "%s: 1 predicts boxes of one class: set "
                       "data.class_agnostic=true, or remove the key", place);
    if (m->number_of_stages == 1 && m->post_processing)
        return pm_fail(PM_ECONFIG, "%s: not together with model.number_of_stages=1, whose "
                       "detections are the proposals: set model.proposals instead",
                       pm_detection_place(c, "model.post_processing"));
    return PM_OK;
}

int pm_detection_read_stages(const struct pm_config *c, const struct pm_detection_model *m,
                             struct pm_task *t)
{
    struct pm_detection_proposals p;
    int err = PM_OK;

    PM_TRY(check_stages(c, m, t));
    t->stages = pm_detection_has_stages(c) && m->number_of_stages != 1 ? 2 : 1;
    t->anchors_outside = m->anchors_outside;
    if (t->anchors_outside == PM_OUTSIDE_AUTO)
        t->anchors_outside = pm_detection_has_stages(c) ? PM_OUTSIDE_PRUNE : PM_OUTSIDE_KEEP;
    PM_TRY(pm_detection_read_object(c, "model.proposals", m->proposals,
                                    pm_detection_proposals_opts, &p));
    t->proposals = (struct pm_detection_post){
        .score_converter = PM_CONVERT_AUTO, .logit_scale = 1,
        .score_threshold = p.score_threshold, .iou_threshold = p.iou_threshold,
        .max_detections_per_class = p.max_proposals, .max_total_detections = p.max_proposals,
        .max_classes_per_detection = 1 };
    if (pm_detection_has_stages(c) && t->stages == 1)
        t->post = t->proposals;
out:
    return err;
}

/* The minibatch of anchors leaves no room for other choices and divisors. With two stages the miner
 * chooses among the proposals. */
static int check_minibatch(const struct pm_config *c, const struct pm_task *t)
{
    const char *other = t->miner.on && t->stages == 1                 ? "hard_example_miner"
                        : t->anchor_sampler.on                        ? "random_example_sampler"
                        : t->loss.normalize_over == PM_NORMALIZE_CLONE && t->stages == 1
                            ? "normalize_over"
                        : !t->loss.normalize_by_matches               ? "normalize_by_matches"
                                                                      : NULL;

    if (!t->minibatch.on || !other)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s: not together with loss.minibatch_sampler%s, which chooses the "
                   "anchors of each picture and divides by their number: remove the key",
                   pm_detection_place(c, pm_arena_printf(c->arena, "loss.%s", other)),
                   t->loss.minibatch_sampler ? "" : ", which this net always has");
}

static int check_second(const struct pm_config *c, const struct pm_task *t)
{
    const struct { const struct cJSON *object; const char *key; } of[] = {
        { t->loss.proposal_sampler, "loss.proposal_sampler" },
        { t->loss.second_stage, "loss.second_stage" },
    };

    for (size_t i = 0; i < PM_COUNT(of); i++)
        if (of[i].object && t->stages == 1)
            return pm_fail(PM_ECONFIG, "%s: the net has no second stage: remove the key",
                           pm_detection_place(c, of[i].key));
    if (t->stages == 2 && t->miner.on && t->miner.max_negatives_per_positive > 0)
        return pm_fail(PM_ECONFIG, "%s.max_negatives_per_positive: %d, but the second stage's "
                       "miner does not limit background: remove the member",
                       pm_detection_place(c, "loss.hard_example_miner"),
                       t->miner.max_negatives_per_positive);
    return PM_OK;
}

int pm_detection_read_stage_losses(const struct pm_config *c, struct pm_task *t)
{
    int err = PM_OK;

    PM_TRY(pm_detection_read_object(c, "loss.minibatch_sampler", t->loss.minibatch_sampler,
                                    pm_detection_minibatch_opts, &t->minibatch));
    t->minibatch.on =
        t->loss.minibatch_sampler || pm_detection_of_net(c, "loss.minibatch_sampler");
    PM_TRY(pm_detection_read_object(c, "loss.proposal_sampler", t->loss.proposal_sampler,
                                    pm_detection_proposal_sampler_opts, &t->proposal_sampler));
    PM_TRY(pm_detection_read_object(c, "loss.second_stage", t->loss.second_stage,
                                    pm_detection_second_loss_opts, &t->second_loss));
    PM_TRY(check_minibatch(c, t));
    PM_TRY(check_second(c, t));
out:
    return err;
}
