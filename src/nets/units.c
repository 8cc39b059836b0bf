/* units: layers shared by named nets. */
#include "nets/nets.h"

#include <pumice/layer.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Returns the epsilon. TensorFlow's fused batch norm never adds less. */
static double epsilon_of(const struct pm_nets_options *o)
{
    const float least = o->conventions ? 0 : 1.001e-5f;

    return (double)(o->batch_norm_epsilon < least ? least : o->batch_norm_epsilon);
}

/* Returns an initializer that the config sets, or `own` after an error. */
static const char *set_init(struct pm_net *net, const char *key, const char *text, const char *own)
{
    struct pm_init parsed;

    if (net->error)
        return own;
    if (text[strcspn(text, " \t\n=")]) /* a layer's spec is separated by blanks */
        net->error = pm_fail(PM_ECONFIG, "%s: '%s': remove the blanks, as in truncated(0.1)", key,
                             text);
    else
        net->error = pm_init_parse(text, &parsed, key);
    return net->error ? own : text;
}

const char *pm_nets_init(struct pm_net *net, const struct pm_nets_options *o, const char *own)
{
    return o->override ? o->override->init
           : o->init   ? set_init(net, "model.init", o->init, own)
                       : own;
}

const char *pm_nets_logits_init(struct pm_net *net, const struct pm_nets_options *o,
                                const char *own)
{
    return o->logits_init ? set_init(net, "model.logits_init", o->logits_init, own) : own;
}

const char *pm_nets_activation(const struct pm_nets_options *o, const char *own)
{
    return o->override ? o->override->activation : own;
}

void pm_nets_begin(struct pm_net *net, const struct pm_nets_options *o)
{
    net->conventions = o->conventions ? PM_CONVENTIONS_TORCH : PM_CONVENTIONS_TENSORFLOW;
    net->batch_norm_epsilon = o->batch_norm_epsilon;
}

struct pm_node *pm_nets_batch_norm(struct pm_net *net, const struct pm_nets_options *o,
                                   const char *name, struct pm_node *x, struct pm_node *residual,
                                   const char *rest)
{
    const struct pm_nets_override *v = o->override;
    const char *scale = v && !v->scale ? " scale=false" : "";
    const char *center = v && !v->center ? " center=false" : "";
    struct pm_node *in[3] = { x };
    int inputs = 1;

    if (residual)
        in[inputs++] = residual;
    if (net->valid_rows && o->batch_norm_train)
        in[inputs++] = net->valid_rows;
    return pm_net_add_many(net, name, in, inputs,
                           "batch_norm decay=%.17g epsilon=%.9g moving_variance=%s frozen=%s "
                           "%s%s%s", o->batch_norm_decay, epsilon_of(o),
                           o->moving_variance ? "biased" : "unbiased",
                           o->batch_norm_train ? "false" : "true", rest, scale, center);
}

struct pm_node *pm_nets_conv_bn(struct pm_net *net, const struct pm_nets_options *o,
                                const char *name, struct pm_node *x, const char *rest,
                                const char *spec, ...)
{
    char text[512];
    va_list args;

    va_start(args, spec);
    vsnprintf(text, sizeof text, spec, args);
    va_end(args);
    x = pm_net_add(net, name, x, "%s bias=false", text);
    return pm_nets_batch_norm(net, o, pm_arena_printf(net->arena, "%s/BatchNorm", name), x, NULL,
                              rest);
}

struct pm_node *pm_nets_depthwise_bn(struct pm_net *net, const struct pm_nets_options *o,
                                     const char *name, struct pm_node *x, int kernel, int stride,
                                     int rate, const char *activation)
{
    return pm_nets_conv_bn(net, o, name, x,
                           pm_arena_printf(net->arena, "activation=%s", activation),
                           "depthwise_conv2d %s regularize=%s weights_init=%s",
                           pm_nets_window(net->arena, o, kernel, stride, rate),
                           o->regularize_depthwise ? "true" : "false",
                           pm_nets_init(net, o, "truncated(0.09)"));
}

struct pm_node *pm_nets_recurrent(struct pm_net *net, const struct pm_nets_options *o,
                                  const char *scope, struct pm_node *x, bool dense)
{
    static const char *const directions[] = { "forward", "backward" };
    const int units = pm_nets_depth(o, 256);
    struct pm_node *half[2];

    for (int k = 0; k < 2; k++)
        half[k] = pm_net_add(net, pm_arena_printf(net->arena, "%s/%s", scope, directions[k]), x,
                             "lstm units=%d direction=%s weights_init=orthogonal", units,
                             directions[k]);
    x = pm_net_add_many(net, pm_arena_printf(net->arena, "%s/concat", scope), half, 2, "concat");
    return dense ? pm_net_add(net, pm_arena_printf(net->arena, "%s/fc", scope), x,
                              "conv2d filters=%d kernel=1 bias=true activation=relu", units)
                 : x;
}

const char *pm_nets_window_same(struct pm_arena *a, int kernel, int stride, int rate)
{
    const int wide = (kernel - 1) * rate + 1, before = (wide - 1) / 2, after = wide - 1 - before;

    if (stride == 1 || kernel == 1)
        return pm_arena_printf(a, "kernel=%d stride=%d dilation=%d padding=same", kernel, stride,
                               rate);
    return pm_arena_printf(a, "kernel=%d stride=%d dilation=%d padding=explicit pad=[%d,%d,%d,%d]",
                           kernel, stride, rate, before, after, before, after);
}

const char *pm_nets_window(struct pm_arena *a, const struct pm_nets_options *o, int kernel,
                           int stride, int rate)
{
    return o->conventions || o->use_explicit_padding
               ? pm_nets_window_same(a, kernel, stride, rate)
               : pm_arena_printf(a, "kernel=%d stride=%d dilation=%d padding=same", kernel, stride,
                                 rate);
}

bool pm_nets_atrous_begin(struct pm_net *net, const char *row, const struct pm_nets_options *o,
                          int min, int max, struct pm_nets_atrous *a)
{
    const int s = o->output_stride;

    *a = (struct pm_nets_atrous) { s, 1, 1 };
    if (s == 0 || (s >= min && s <= max && (s & (s - 1)) == 0))
        return true;
    if (!net->error)
        net->error = pm_fail(PM_ECONFIG,
                             "model.output_stride: %d is not possible for %s; allowed are the "
                             "powers of 2 from %d to %d, and 0",
                             s, row, min, max);
    return false;
}

void pm_nets_atrous_step(struct pm_nets_atrous *a, int *stride, int *rate)
{
    *rate = 1;
    if (a->stride == a->limit) {
        *rate = a->rate;
        a->rate *= *stride;
        *stride = 1;
    } else {
        a->stride *= *stride;
    }
}

struct pm_node *pm_nets_mobile_begin(struct pm_net *net, const char *row,
                                     const struct pm_nets_options *o, const char *name,
                                     struct pm_node *images, int filters, const char *activation,
                                     struct pm_nets_atrous *a)
{
    int stride = 2, rate;

    if (!pm_nets_atrous_begin(net, row, o, 1, 32, a))
        return images;
    pm_nets_atrous_step(a, &stride, &rate);
    return pm_nets_conv_bn(net, o, name, images,
                           pm_arena_printf(net->arena, "activation=%s", activation),
                           "conv2d filters=%d %s weights_init=%s", filters,
                           pm_nets_window(net->arena, o, 3, stride, rate),
                           pm_nets_init(net, o, "truncated(0.09)"));
}
