/* mining: see mining.h. Losses are compared as integers in the floats' order; both zeros are equal
 * and NaN is above everything. The host makes the list of how many rows each step keeps. So all
 * devices keep the same rows. The C function and the shaders (lib/mining.glsl) find the k-th
 * largest loss by its digits. They start with the highest digit and count each digit among the rows
 * that agree in the digits before it. Then they do the same with the numbers of the rows whose loss
 * equals it. */
#include "layers/mining.h"

#include <string.h>

#include "label_weights.params.h"
#include "layers/vmath.h"
#include "mining.params.h"

/* ---- weights of labels ----------------------------------------------------------------- */

static void label_weights_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct label_weights_params *p = a->params;
    const int *labels = a->buf[0];
    const float *table = a->buf[1], *weights = a->buf[2];
    float *y = a->buf[3];

    for (size_t i = begin; i < end; i++) {
        const bool known = labels[i] >= 0 && labels[i] < p->k;

        y[i] = labels[i] == p->ignore ? 0
               : (weights ? weights[i] : 1) * (known ? table[labels[i]] : 1);
    }
}

static const struct pm_kernel label_weights = {
    .name = "label_weights", .bufs = "r:labels r:table r?:weights w:y",
    .params_size = sizeof(struct label_weights_params), .cpu = label_weights_cpu,
};

void pm_label_weights(struct pm_calls *c, struct pm_tensor labels, struct pm_tensor weights,
                      struct pm_floats table, int ignore, struct pm_tensor y)
{
    const struct label_weights_params p = { (int)pm_count(labels), table.count, ignore };
    const struct pm_tensor values =
        pm_calls_constant(c, "label_weights", table.v, PM_SHAPE1(table.count), PM_F32);

    pm_call(c, &label_weights, pm_count(labels), &p, PM_BUFS(labels, values, weights, y));
}

/* ---- the largest losses ---------------------------------------------------------------- */

enum { HALF = 1 << 16 }; /* number of values of a digit in the C function */

PM_INLINE uint32_t key_of(float loss)
{
    uint32_t bits, magnitude;

    memcpy(&bits, &loss, sizeof bits);
    magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return 0xffffffffu;
    return bits > 0x80000000u ? 0x80000000u - magnitude : 0x80000000u + magnitude;
}

/* Returns the bin of the rest-th value from above. rest becomes the number of values wanted from
 * it. */
static uint32_t search(const uint32_t count[HALF], uint32_t *rest)
{
    uint32_t bin = HALF - 1;

    for (; bin > 0 && count[bin] < *rest; bin--)
        *rest -= count[bin];
    return bin;
}

static void mine_cpu(const struct pm_args *a)
{
    const struct mining_params *p = a->params;
    const float *losses = a->buf[0], *weights = a->buf[1];
    const struct pm_step *step = a->buf[3];
    uint32_t *count = a->buf[4];
    float *mined = a->buf[5], *mined_losses = a->buf[6];
    const int *keep = a->buf[2];
    uint32_t rest =
        (uint32_t)keep[step->step < (uint32_t)p->steps ? step->step : (uint32_t)p->steps];
    uint32_t last;

    memset(count, 0, 2 * HALF * sizeof *count);
    for (int i = 0; i < p->rows; i++)
        count[key_of(losses[i]) / HALF]++;
    last = search(count, &rest) * HALF;
    for (int i = 0; i < p->rows; i++)
        if (key_of(losses[i]) / HALF == last / HALF)
            count[HALF + key_of(losses[i]) % HALF]++;
    last += search(count + HALF, &rest);
    for (int i = 0; i < p->rows; i++) {
        const uint32_t key = key_of(losses[i]);
        const bool keeps = (key > last || (key == last && rest > 0)) && key != 0x80000000u;

        rest -= key == last && rest > 0;
        mined[i] = !keeps ? 0 : weights ? weights[i] : 1;
        mined_losses[i] = keeps ? losses[i] : 0;
    }
}

static size_t mine_scratch(const void *params, int buf)
{
    (void)params;
    return buf == 4 ? 2 * HALF * sizeof(uint32_t) : 0;
}

static bool mine_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                      struct pm_picks *out)
{
    const struct mining_params *p = params;
    const int digits = MINING_KEY_DIGITS + p->index_digits;
    const size_t groups = (count + 4095) / 4096;

    (void)caps;
    if (level > 0)
        return false;
    pm_pick_elements("mining_clear", 256, (size_t)digits * MINING_BINS, out);
    for (int i = 0; i <= digits; i++) {
        struct pm_dispatch *d = &out->d[1 + i];

        *d = out->d[0];
        d->shader = i < digits ? "mining_count" : "mining_keep";
        d->groups[0] = (uint32_t)(groups < 256 ? groups : 256);
        d->spec[3] = (uint32_t)i;
        d->specs = 4;
    }
    out->count = digits + 2;
    out->scratch[4] = ((size_t)digits * (MINING_BINS + 3)) * sizeof(uint32_t);
    return true;
}

static double mine_flops(const void *params, size_t count)
{
    (void)params;
    return 8.0 * (double)count;
}

static const struct pm_kernel mine = {
    .name = "mining", .bufs = "r:losses r?:weights r:keep r:step t:work w:mined w:mined_losses",
    .params_size = sizeof(struct mining_params), .cpu_all = mine_cpu, .cpu_scratch = mine_scratch,
    .pick = mine_pick, .flops = mine_flops,
};

int pm_mining_keep(struct pm_mining m, int rows, int step)
{
    const volatile float ratio = m.steps > 0 ? (float)step / (float)m.steps : 1;
    const volatile float scaled = ratio * m.percent, rest = 1 - ratio;
    const volatile float share = scaled + rest; /* volatile rounds each step to float */
    const double k = (double)(share * (float)rows);

    return k < 1 ? 1 : k < rows ? (int)k : rows;
}

/* The number of rows mined in steps 0..steps. The last number holds for all later steps. */
static struct pm_tensor keep_of(struct pm_calls *c, struct pm_mining m, int rows)
{
    int *list = pm_calloc((size_t)m.steps + 1, sizeof *list);
    struct pm_tensor made;

    for (int s = 0; s <= m.steps; s++)
        list[s] = pm_mining_keep(m, rows, s);
    made = pm_calls_constant(c, "keep", list, PM_SHAPE1(m.steps + 1), PM_I32);
    pm_free(list);
    return made;
}

void pm_mine(struct pm_calls *c, struct pm_mining m, struct pm_tensor losses,
             struct pm_tensor weights, struct pm_tensor mined, struct pm_tensor mined_losses)
{
    struct mining_params p = { .rows = (int)pm_count(losses), .steps = m.steps,
                               .index_digits = 1 };

    while ((size_t)(p.rows - 1) >> MINING_BITS * p.index_digits)
        p.index_digits++;
    pm_call(c, &mine, (size_t)p.rows, &p,
            PM_BUFS(losses, weights, keep_of(c, m, p.rows), pm_step_tensor(c), PM_NO_TENSOR, mined,
                    mined_losses));
}
