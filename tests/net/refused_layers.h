/* refused_layers: checks that layers refuse wrong inputs and options, and their messages. */
#ifndef REFUSED_LAYERS_H
#define REFUSED_LAYERS_H

#include <pumice/net.h>

#include "device/ok.h"

enum { MOST_INPUTS = 6 };

/* A layer and inputs that it takes. */
struct layer {
    const char *name, *order; /* order: words of the message about types */
    int inputs;
    struct pm_shape shape[MOST_INPUTS];
    enum pm_type type[MOST_INPUTS];
};

#define S1(a) { 1, { a } }
#define S2(a, b) { 2, { a, b } }
#define S3(a, b, c) { 3, { a, b, c } }
#define S4(a, b, c, d) { 4, { a, b, c, d } }

/* Another shape of an input, options, and words of the message. */
struct wrong {
    int input;
    struct pm_shape shape;
    const char *options, *text;
};

/* Adds the layer, with another input or another type of input number `other`. */
static inline struct pm_net *with(const struct layer *l, const struct wrong *w, int other)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *in[MOST_INPUTS];

    for (int i = 0; i < l->inputs; i++) {
        char name[8];

        snprintf(name, sizeof name, "in%d", i);
        in[i] = pm_net_input(net, name, w && w->input == i ? w->shape : l->shape[i],
                             i == other ? PM_U8 : l->type[i]);
    }
    pm_net_add_many(net, "y", in, l->inputs, "%s %s", l->name, w ? w->options : "");
    return net;
}

static inline void expect_refused(struct pm_net *net, const struct layer *l, const char *text)
{
    if (net->error != PM_ECONFIG || !strstr(pm_error_text(), text) || !pm_is_line(pm_error_text()))
        fail_msg("%s: expected '%s', not %d, '%s'", l->name, text, net->error, pm_error_text());
    pm_net_destroy(&net);
}

/* Expects that the layer takes its inputs, but none of the list's, and no input of type uint8. */
static inline void refuse(const struct layer *l, const struct wrong *list, size_t count)
{
    struct pm_net *net = with(l, NULL, -1);

    ok(net->error);
    pm_net_destroy(&net);
    for (size_t i = 0; i < count; i++)
        expect_refused(with(l, &list[i], -1), l, list[i].text);
    for (int i = 0; i < l->inputs; i++)
        expect_refused(with(l, NULL, i), l, l->order);
}

#endif
