/* small_detector: FOLDER/net.json of a detector with two small maps, for data in FOLDER/data. */
#ifndef SMALL_DETECTOR_H
#define SMALL_DETECTOR_H

#include "e2e/program.h"

/* Maps of 4x4 and 2x2 with two anchors in a cell. */
static const char small_detector[] =
    "{ \"task\": \"detection\", \"model\": { \"layers\": [\n"
    "  { \"name\": \"m0\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 4, \"stride\": 4,\n"
    "    \"activation\": \"relu\" },\n"
    "  { \"name\": \"m1\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 2,\n"
    "    \"activation\": \"relu\" },\n"
    "  { \"name\": \"m2\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 2,\n"
    "    \"activation\": \"relu\" },\n"
    "  { \"name\": \"anchors\", \"layer\": \"ssd_anchors\", \"aspect_ratios\": [1],\n"
    "    \"min_scale\": 0.3, \"reduce_boxes_in_lowest_layer\": false,\n"
    "    \"inputs\": [\"images\", \"m1\", \"m2\"] },\n"
    "  { \"name\": \"boxes_1\", \"layer\": \"conv2d\", \"inputs\": [\"m1\"], \"filters\": 8 },\n"
    "  { \"name\": \"classes_1\", \"layer\": \"conv2d\", \"inputs\": [\"m1\"], \"filters\": 8 },\n"
    "  { \"name\": \"boxes_2\", \"layer\": \"conv2d\", \"inputs\": [\"m2\"], \"filters\": 8 },\n"
    "  { \"name\": \"classes_2\", \"layer\": \"conv2d\", \"inputs\": [\"m2\"],\n"
    "    \"filters\": 8 } ] },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"input\": { \"preprocessing\": \"ssd\", \"size\": 32,\n"
    "             \"augment\": [{ \"name\": \"random_flip\" }, { \"name\": \"resize\" }] },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.01 },\n"
    "  \"run\": { \"folder\": \"%s/run\", \"steps\": 30, \"batch_size\": 6,\n"
    "           \"log_every_steps\": 1, \"save_every_steps\": 4, \"keep\": 2,\n"
    "           \"summary_every_steps\": 10 },\n"
    "  \"eval\": { \"every_steps\": 15, \"batch_size\": 8, \"score_threshold\": 0.01,\n"
    "            \"metrics\": [\"coco\", \"voc\"] } }\n";

#endif
