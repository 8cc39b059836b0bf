/* small_reader: a small net that reads drawn words of up to three letters a..d, and its data. */
#ifndef SMALL_READER_H
#define SMALL_READER_H

#include "e2e/interrupted.h"

/* A picture has 10 steps. A recurrent layer reads them in one direction. */
static const char small_reader[] =
    "{ \"task\": \"recognition\", \"model\": { \"layers\": [\n"
    "    { \"name\": \"c1\", \"layer\": \"conv2d\", \"filters\": 16 },\n"
    "    { \"name\": \"b1\", \"layer\": \"batch_norm\", \"activation\": \"relu\",\n"
    "      \"decay\": 0.9 },\n"
    "    { \"name\": \"p1\", \"layer\": \"max_pool\", \"kernel\": 2, \"stride\": 2 },\n"
    "    { \"name\": \"c2\", \"layer\": \"conv2d\", \"filters\": 32 },\n"
    "    { \"name\": \"b2\", \"layer\": \"batch_norm\", \"activation\": \"relu\",\n"
    "      \"decay\": 0.9 },\n"
    "    { \"name\": \"p2\", \"layer\": \"max_pool\", \"kernel\": 2, \"stride\": 2 },\n"
    "    { \"name\": \"c3\", \"layer\": \"conv2d\", \"filters\": 48, \"kernel\": [4, 3],\n"
    "      \"padding\": \"valid\" },\n"
    "    { \"name\": \"b3\", \"layer\": \"batch_norm\", \"activation\": \"relu\",\n"
    "      \"decay\": 0.9 },\n"
    "    { \"name\": \"r1\", \"layer\": \"lstm\", \"units\": 32 },\n"
    "    { \"name\": \"both\", \"layer\": \"concat\", \"inputs\": [\"r1\", \"b3\"] },\n"
    "    { \"name\": \"logits\", \"layer\": \"conv2d\", \"filters\": 5, \"kernel\": 1 } ] },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"validation\", \"threads\": 1,\n"
    "            \"charset\": \"%s/letters.txt\", \"max_num_steps\": 4 },\n"
    "  \"input\": { \"preprocessing\": \"ssd\", \"size\": [16, 48] },\n"
    "  \"optim\": { \"name\": \"adam\", \"clip_norm\": 10, \"moving_average_decay\": 0.9 },\n"
    "  \"schedule\": { \"base_lr\": 0.003 }, \"devices\": [\"cpu\"],\n"
    "  \"run\": { \"steps\": 16, \"batch_size\": 6, \"save_every_steps\": 4,\n"
    "           \"log_every_steps\": 1 },\n"
    "  \"eval\": { \"every_steps\": 8, \"batch_size\": 4 } }\n";

/* Options: without batch norm, whose statistics depend on the parts of a batch. */
#define NO_BATCH_NORM                                                                              \
    "'model.layers.1={\"name\":\"b1\",\"layer\":\"relu\"}' "                                       \
    "'model.layers.4={\"name\":\"b2\",\"layer\":\"relu\"}' "                                       \
    "'model.layers.7={\"name\":\"b3\",\"layer\":\"relu\"}' "
/* Attention, and a transformer. The last layer's numbers are the sequence. */
#define ATTENTION "model.predictor=attention model.decoder_units=16 "
#define TRANSFORMER                                                                                \
    "model.transformer=tps 'model.spatial_transformer={\"output_h\":16,\"output_w\":48,"           \
    "\"localization_depth\":0.25,\"num_control_points\":8}' "

/* Makes FOLDER with net.json and the words in FOLDER/data. */
static inline int make_reader(void)
{
    if (make_world(false) < 0)
        return -1;
    check(run(NULL, "dataset make words %s letters=abcd most=3 height=16 train=20 validation=7 "
              "test=3", in("data")), 0);
    put_text(in("letters.txt"), "a\nb\nc\nd\n");
    put_net(small_reader);
    return 0;
}

#endif
