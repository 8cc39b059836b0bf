/* rotated_bars: FOLDER/data with drawn bars, and detectors of rotated boxes that learn them. */
#ifndef ROTATED_BARS_H
#define ROTATED_BARS_H

#include "e2e/software_drivers.h"
#include "e2e/learnt.h"

/* Draws the bars and writes FOLDER/net.json. Returns -1 if there is no program to test. */
static inline int make_bars(const char *net)
{
    if (make_world(false) < 0)
        return -1;
    check(run(NULL, "dataset make bars %s size=64 train=24 validation=2 test=8 seed=2", in("data")),
          0);
    put_net(net);
    return 0;
}

/* lavapipe and SwiftShader together follow two CPUs for 20 steps, with further options. */
static inline void follows_two_cpus(const char *more)
{
    char text[1024];

    need_both_drivers();
    snprintf(text, sizeof text, "run.steps=20 eval.every_steps=0 %s 'devices=[\"cpu\",\"cpu\"]'",
             more);
    train("cpus", text);
    snprintf(text, sizeof text, "run.steps=20 eval.every_steps=0 %s "
             "'devices=[\"llvmpipe\",\"SwiftShader\"]'", more);
    train("drivers", text);
    same_losses("cpus", "drivers", 1, 20, 1e-5);
}

/* Trains FOLDER/learns on the training pictures. */
static inline void learn_bars(int steps)
{
    char text[512];

    snprintf(text, sizeof text, "run.steps=%d run.batch_size=12 eval.every_steps=0 "
             "optim.name=adam optim.epsilon=1e-8 schedule.base_lr=0.003 schedule.policy=cosine "
             "input.augment=[] run.log_every_steps=50", steps);
    train("learns", text);
}

static inline double member(const cJSON *list, int k)
{
    return cJSON_GetNumberValue(cJSON_GetArrayItem(list, k));
}

/* FOLDER/learns finds bars in eight training pictures, some of them turned. A found bar is long and
 * lies in its upright box. */
static inline void finds_bars(void)
{
    struct result r;
    cJSON *report;
    const cJSON *image, *row;
    int bars = 0, turned = 0;

    check(run(NULL, "dataset inspect %s/bars_train_00000-of-00001.tfrecord --records 8 --pictures "
              "%s", in("data"), in("pictures")), 0);
    r = run(NULL, "predict %s run.folder=%s %s --out %s --json", in("net.json"), in("learns"),
            in("pictures"), in("drawn"));
    report = json_of(&r);
    cJSON_ArrayForEach(image, cJSON_GetObjectItem(report, "images"))
        cJSON_ArrayForEach(row, cJSON_GetObjectItem(image, "boxes"))
        {
            const cJSON *box = cJSON_GetObjectItem(row, "box");
            const cJSON *v = cJSON_GetObjectItem(row, "rotated");
            const double h = member(v, 2), w = member(v, 3), angle = member(v, 4);

            assert_int_equal(cJSON_GetArraySize(v), 5);
            assert_true(w >= h && fabs(angle) <= 1.5708);
            if (number_of(row, "score") < 0.5)
                continue;
            bars++;
            turned += fabs(angle) > 0.3 && fabs(angle) < 1.2;
            assert_true(member(box, 2) - member(box, 0) <=
                        w * fabs(sin(angle)) + h * cos(angle) + 0.1);
        }
    assert_true(bars >= 8 && turned > 0);
    cJSON_Delete(report);
    check(r, 0);
}

#endif
