/* quantized_conv2d in ONNX. Weights are integers followed by DequantizeLinear, and so are biases if
 * the input is quantised. A runtime then computes the convolution in integers. */
#include "layers/quantized_conv2d.h"

#include "layers/quantize_rows.h"
#include "onnx/export_nodes.h"

#include <math.h>

/* Computes factor[k], which folds batch norm into the weights, and add[k]. Without batch norm they
 * are 1 and the biases. */
static bool factors(const struct pm_node *n, struct pm_export *g, int k, float *factor, float *add)
{
    const struct pm_quantized *cfg = n->cfg;
    const struct pm_quantized_places w = pm_quantized_places(cfg);
    float *variance = pm_malloc(2 * (size_t)k * sizeof *variance), *mean = variance + k;
    bool ok = true;

    for (int i = 0; i < k; i++)
        factor[i] = 1, add[i] = 0;
    if (cfg->batch_norm)
        ok = pm_export_read(g, n, w.variance, variance) && pm_export_read(g, n, w.mean, mean) &&
             (w.gamma < 0 || pm_export_read(g, n, w.gamma, factor)) &&
             (w.beta < 0 || pm_export_read(g, n, w.beta, add));
    else if (cfg->bias)
        ok = pm_export_read(g, n, 1, add);
    for (int i = 0; ok && cfg->batch_norm && i < k; i++) {
        factor[i] *= 1 / sqrtf(variance[i] + cfg->epsilon);
        add[i] = pm_quant_folded_bias(add[i], mean[i], factor[i]);
    }
    pm_free(variance);
    return ok;
}

/* If the input is not rounded to 8 bits, the product has the rounded weights as floats. With
 * integer weights onnxruntime would round the input too. */
static const char *export_floats(struct pm_export *g, const int64_t *dim, const uint8_t *q,
                                 const struct pm_quant_steps *steps)
{
    const size_t count = (size_t)(dim[0] * dim[1]);
    float *v = pm_malloc(count * sizeof *v);
    const char *name;

    for (size_t i = 0; i < count; i++)
        v[i] = (float)((int)q[i] - steps->zero) * steps->step;
    name = pm_export_tensor(g, "weights", PM_DTYPE_F32, 2, dim, v);
    pm_free(v);
    return name;
}

/* Exports the weights as uint8 [o][i][h][w], or [i][o] if flat. Sets *unit to their step. */
static const char *export_weights(const struct pm_node *n, struct pm_export *g,
                                  const struct conv2d_params *p, const float *factor, float *unit)
{
    const struct pm_quantized *cfg = n->cfg;
    const struct pm_quantized_places w = pm_quantized_places(cfg);
    const size_t out = (size_t)p->k, in = cfg->filters ? (size_t)p->c / (size_t)p->groups : 1,
                 pixels = (size_t)p->kh * (size_t)p->kw, count = out * in * pixels;
    const int64_t dim[] = { p->k, (int64_t)in, p->kh, p->kw }, matrix[] = { p->c, p->k };
    float *v = pm_malloc(count * sizeof *v), low, high;
    struct pm_quant_steps input, steps;
    uint8_t *q = pm_malloc(count);
    const char *name = NULL;

    if (pm_export_read(g, n, 0, v) && pm_export_read(g, n, w.min, &low) &&
        pm_export_read(g, n, w.max, &high)) {
        steps = pm_quant_steps(low, high, true);
        for (size_t i = 0; i < count; i++) { /* v is [pixel][in][out] */
            const size_t o = i % out,
                         at = cfg->flat ? i : (o * in + i / out % in) * pixels + i / out / in;

            q[at] = (uint8_t)pm_quant_integer(&steps, v[i] * factor[o]);
        }
        *unit = steps.step;
        if (pm_quantized_rounds_input(n)) /* the sums are numbers of steps */
            steps.step = 1;
        if (cfg->flat && !pm_quant_range_steps(n->in[0], g, &input))
            name = export_floats(g, matrix, q, &steps);
        else
            name = pm_quant_export_integers(g, "weights", PM_DTYPE_U8, cfg->flat ? 2 : 4,
                                            cfg->flat ? matrix : dim, q, steps.step, steps.zero);
    }
    pm_free(v);
    pm_free(q);
    return name;
}

/* The product of the steps of images and of weights. */
static float images_product(const struct pm_node *n, float weights_step)
{
    return ((const struct pm_quantized *)n->cfg)->input_step * weights_step;
}

/* Runtimes compute in integers if the biases are int32 in the product's steps. If the input is not
 * quantised, the biases stay floats. */
static const char *export_biases(const struct pm_node *n, struct pm_export *g, const float *add,
                                 int k, float weights_step)
{
    const int64_t dim = k;
    struct pm_quant_steps input;
    int32_t *q;
    const char *name;

    if (pm_quantized_rounds_input(n)) {
        float *steps = pm_malloc((size_t)k * sizeof *steps);

        for (int i = 0; i < k; i++)
            steps[i] = pm_quant_bias_steps(add[i], images_product(n, weights_step));
        name = pm_export_numbers(g, k, steps);
        pm_free(steps);
        return name;
    }
    if (!pm_quant_range_steps(n->in[0], g, &input) ||
        !(input.step * weights_step >= (float)LEAST_WIDTH))
        return pm_export_numbers(g, k, add);
    q = pm_malloc((size_t)k * sizeof *q);
    for (int i = 0; i < k; i++)
        q[i] = (int32_t)pm_quant_bias_steps(add[i], input.step * weights_step);
    name = pm_quant_export_integers(g, "biases", PM_DTYPE_I32, 1, &dim, q,
                                    input.step * weights_step, 0);
    pm_free(q);
    return name;
}

static const char *export_operator(const struct pm_node *n, struct pm_export *g,
                                   const struct conv2d_params *p, const char *weights,
                                   const char *biases, float weights_step)
{
    const struct pm_quantized *cfg = n->cfg;
    const int *pad = cfg->pad.v;
    const bool rounds = pm_quantized_rounds_input(n);
    const char *x = pm_export_x(g, n, 0), *y;
    struct pm_export_window v = {
        { p->kh, p->kw },
        { p->stride_h, p->stride_w },
        { p->dilation_h, p->dilation_w },
        (enum pm_padding)cfg->padding,
        { 0 },
        { 0 },
    };

    if (rounds)
        x = pm_export_op(g, "Round", PM_VALUES(pm_export_op(
                             g, "Mul", PM_VALUES(x, pm_export_number(g, 1 / cfg->input_step)))));
    if (cfg->flat) {
        x = pm_export_reshape(g, x, n->in[0]->out_shape, PM_SHAPE2(p->n, p->c));
        y = pm_export_op(g, "Gemm", PM_VALUES(x, weights, biases));
    } else {
        for (int i = 0; i < 2 && cfg->pad.count == 4; i++)
            v.before[i] = pad[2 * i], v.after[i] = pad[2 * i + 1];
        y = pm_export_op(g, "Conv", PM_VALUES(x, weights, biases));
        pm_export_int(g, "group", p->groups);
        pm_export_window(g, n->in[0]->out_shape, &v);
    }
    if (!rounds)
        return y;
    return pm_export_op2(g, "Mul", y, pm_export_number(
                             g, pm_quant_unit(images_product(n, weights_step))));
}

const char *pm_quantized_onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct pm_quantized *cfg = n->cfg;
    struct conv2d_params p = { 0 };
    const char *y = pm_export_x(g, n, 0), *weights;
    float *factor, *add, step = 0;

    pm_quantized_params(n, &p);
    factor = pm_malloc(2 * (size_t)p.k * sizeof *factor);
    add = factor + p.k;
    if (factors(n, g, p.k, factor, add) &&
        (weights = export_weights(n, g, &p, factor, &step)) != NULL)
        y = export_operator(n, g, &p, weights, export_biases(n, g, add, p.k, step), step);
    pm_free(factor);
    return pm_export_activation(g, y, cfg->activation, cfg->slope);
}
