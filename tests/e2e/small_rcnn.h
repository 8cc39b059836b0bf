/* small_rcnn: FOLDER/net.json of a small Faster R-CNN, for drawn shapes in FOLDER/data, and its
 * training in parts of a batch. */
#ifndef SMALL_RCNN_H
#define SMALL_RCNN_H

#include "e2e/interrupted.h"

/* The first stage has a map of 6x6 cells with four anchors in each. */
static const char small_rcnn[] =
    "{ \"task\": \"detection\", \"model\": { \"name\": \"faster_rcnn_mobilenet_v1\",\n"
    "    \"depth_multiplier\": 0.25, \"first_stage_box_predictor_depth\": 32,\n"
    "    \"anchors\": { \"scales\": [0.1, 0.2], \"aspect_ratios\": [1, 2] } },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"input\": { \"size\": 96, \"augment\": [{ \"name\": \"random_flip\" },\n"
    "                                       { \"name\": \"resize\" }] },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"loss\": { \"minibatch_sampler\": { \"batch_size\": 32 } },\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.01 },\n"
    "  \"run\": { \"folder\": \"%s/run\", \"steps\": 24, \"batch_size\": 6,\n"
    "           \"log_every_steps\": 1, \"save_every_steps\": 4, \"keep\": 2 },\n"
    "  \"eval\": { \"every_steps\": 12, \"batch_size\": 8, \"score_threshold\": 0.01 } }\n";

/* Draws shapes as make_shapes does. net: the members in which FOLDER/net.json differs from
 * small_rcnn, an object that begins with "base": ["rcnn.json"]. */
static inline int make_rcnn(const char *net, int size, int train, int test)
{
    if (make_shapes(net, size, train, test) < 0)
        return -1;
    put_folder_text("rcnn.json", small_rcnn);
    return 0;
}

/* All proposals train the second stage: those of the 52 anchors inside the input. */
enum { RCNN_INSIDE = 52 };
#define RCNN_ALL                                                                                   \
    "model.proposals='{\"max_proposals\":52,\"iou_threshold\":1}' "                                \
    "loss.proposal_sampler='{\"batch_size\":52,\"positive_fraction\":1}' "

/* Parts of a batch learn what one device learns (assert_same_in_parts). Rounding may exchange two
 * proposals of nearly equal scores. Then others are suppressed, left out or drawn by the sampler,
 * and the loss differs. So these three are tested with a first stage that is not trained, whose
 * proposals have the same bits in all parts. The training of both stages is tested with all
 * proposals, whose order does not matter. both: further options of this test. */
static inline void assert_rcnn_in_parts(const char *both)
{
    char more[256];

    assert_same_in_parts("second_", "'optim.trainable=[\"SecondStage\"]'");
    snprintf(more, sizeof more, RCNN_ALL "%s", both);
    assert_same_in_parts("both_", more);
    for (int step = 1; step <= 10; step++) {
        const double objects = logged("both_one", step, "positive_proposals");
        const double others = logged("both_one", step, "negative_proposals");

        assert_true(objects > 0 && fabs(objects + others - RCNN_INSIDE) < 1e-9);
    }
}

#endif
