/* branches: builds the blocks of Inception nets from texts. nets.h describes the language. */
#include "nets/nets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int pm_branches_depth(const struct pm_branches *b, int filters)
{
    const struct pm_nets_options *o = b->options;
    const int scaled = (int)(filters * o->depth_multiplier);

    if (o->depth_multiplier == 0) /* the net's options have no depth_multiplier */
        return filters;
    return scaled < o->min_depth ? o->min_depth : scaled;
}

static const char *padding(const struct pm_branches *b, bool valid)
{
    return valid && !b->aligned ? "valid" : "same";
}

struct pm_node *pm_branches_conv(const struct pm_branches *b, const char *name, struct pm_node *x,
                                 int filters, int kernel_h, int kernel_w, int stride, bool valid,
                                 const char *weights_init)
{
    const bool own = !b->options->conventions && !b->options->override;

    name = pm_arena_printf(b->net->arena, "%s/%s", b->scope, name);
    return pm_nets_conv_bn(b->net, b->options, name, x,
                           pm_arena_printf(b->net->arena, "%sactivation=%s",
                                           own ? "scale=false " : "",
                                           pm_nets_activation(b->options, "relu")),
                           "conv2d filters=%d kernel=[%d,%d] stride=%d dilation=%d padding=%s "
                           "weights_init=%s", pm_branches_depth(b, filters), kernel_h, kernel_w,
                           b->unstrided ? 1 : stride, b->rate ? b->rate : 1, padding(b, valid),
                           weights_init ? weights_init
                                        : pm_nets_init(b->net, b->options, b->weights_init));
}

struct pm_node *pm_branches_pool(const struct pm_branches *b, const char *name, struct pm_node *x,
                                 const char *kind, int kernel, int stride, bool valid)
{
    name = pm_arena_printf(b->net->arena, "%s/%s", b->scope, name);
    if (b->options->conventions && strcmp(kind, "avg") == 0 && !valid)
        return pm_net_add(b->net, name, x, "avg_pool kernel=%d stride=%d padding=explicit "
                          "pad=[%d,%d,%d,%d] count_pad=true", kernel, stride, kernel / 2,
                          kernel / 2, kernel / 2, kernel / 2);
    return pm_net_add(b->net, name, x,
                      "%s_pool kernel=%d stride=%d padding=%s", kind, kernel,
                      b->unstrided ? 1 : stride, padding(b, valid));
}

/* The suffixes of a layer's name: "@3x3" a kernel, "/2" a stride, "v" VALID padding. */
struct manner {
    int kernel_h, kernel_w, stride;
    bool valid;
};

static const char *read_manner(const char *s, struct manner *m)
{
    if (*s == '@') {
        m->kernel_h = (int)strtol(s + 1, (char **)&s, 10);
        m->kernel_w = (int)strtol(s + 1, (char **)&s, 10);
    }
    if (*s == '/')
        m->stride = (int)strtol(s + 1, (char **)&s, 10);
    m->valid = *s == 'v';
    return s + m->valid;
}

/* Builds a pooling, named as in the original: ..._0a_3x3, or ..._1a_3x3 if it has a stride. */
static struct pm_node *pool(const struct pm_branches *b, const char *prefix, struct pm_node *x,
                            const char *text)
{
    const bool max = text[0] == 'm';
    struct manner m = { 3, 3, 1, false };

    read_manner(text + 3, &m);
    return pm_branches_pool(b, pm_arena_printf(b->net->arena, "%s%sPool_%s_3x3", prefix,
                                               max ? "Max" : "Avg", m.stride > 1 ? "1a" : "0a"),
                            x, max ? "max" : "avg", 3, m.stride, m.valid);
}

/* Builds one layer from its text. The text has no surrounding blanks. */
static struct pm_node *layer(const struct pm_branches *b, const char *prefix, struct pm_node *x,
                             const char *text)
{
    struct manner m = { 0, 0, 1, false };
    char name[64] = "", init[64] = "";
    size_t length = strcspn(text, "@/ ");
    const char *last, *s;
    int filters, fields;

    if (strncmp(text, "avg", 3) == 0 || strncmp(text, "max", 3) == 0)
        return pool(b, prefix, x, text);
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    last = strrchr(name, '_');
    fields = last ? sscanf(last, "_%dx%d", &m.kernel_h, &m.kernel_w) : 0;
    s = read_manner(text + length, &m);
    fields += sscanf(s, "%d %63s", &filters, init);
    assert(fields >= 3 && m.kernel_h > 0 && m.kernel_w > 0);
    (void)fields;
    return pm_branches_conv(b, pm_arena_printf(b->net->arena, "%s%s", prefix, name), x, filters,
                            m.kernel_h, m.kernel_w, m.stride, m.valid, init[0] ? init : NULL);
}

/* Cuts the first part off *text at a separator and trims blanks. Returns NULL at the end. */
static char *part(struct pm_arena *a, const char **text, char separator)
{
    const char *begin = *text + strspn(*text, " ");
    const char *end = begin + strcspn(begin, (char[]){ separator, 0 });

    if (!*begin)
        return NULL;
    *text = *end ? end + 1 : end;
    while (end > begin && end[-1] == ' ')
        end--;
    return pm_arena_printf(a, "%.*s", (int)(end - begin), begin);
}

struct pm_node *pm_branches_chain(const struct pm_branches *b, const char *prefix,
                                  struct pm_node *x, const char *text)
{
    struct pm_arena *a = b->net->arena;

    for (const char *all; (all = part(a, &text, ','));) {
        struct pm_node *both[2];
        const char *one;
        int count = 0;

        while ((one = part(a, &all, '&'))) {
            assert(count < 2);
            both[count++] = layer(b, prefix, x, one);
        }
        x = count == 1 ? both[0]
                       : pm_net_add_many(b->net, pm_arena_printf(a, "%s/%sconcat", b->scope,
                                                                 prefix),
                                         both, count, "concat axis=3");
    }
    return x;
}

struct pm_node *pm_branches_block(const struct pm_branches *b, const char *name, struct pm_node *x,
                                  const char *const *branches)
{
    struct pm_arena *a = b->net->arena;
    struct pm_node *out[PM_MAX_JOINED];
    int count = 0;

    for (; branches[count]; count++)
        out[count] = pm_branches_chain(b, pm_arena_printf(a, "%s/Branch_%d/", name, count), x,
                                       branches[count]);
    return pm_net_add_many(b->net, pm_arena_printf(a, "%s/%s", b->scope, name), out, count,
                           "concat axis=3");
}

struct pm_node *pm_branches_auxiliary(const struct pm_branches *b, const char *conv,
                                      const char *logits, struct pm_node *x, int num_classes)
{
    struct pm_arena *a = b->net->arena;

    x = pm_branches_pool(b, "AuxLogits/AvgPool_1a_5x5", x, "avg", 5, 3, true);
    x = pm_branches_chain(b, "AuxLogits/", x, "Conv2d_1b_1x1 128");
    x = pm_branches_conv(b, conv, x, 768, x->out_shape.dim[1], x->out_shape.dim[2], 1, true, NULL);
    x = pm_net_add(b->net, pm_arena_printf(a, "%s/AuxLogits/Flatten", b->scope), x, "flatten");
    return pm_net_add(b->net, pm_arena_printf(a, "%s/%s", b->scope, logits), x,
                      "fully_connected units=%d regularize_bias=%s", num_classes,
                      b->regularize_bias ? "true" : "false");
}

struct pm_node *pm_branches_stem(const struct pm_branches *b, struct pm_node *x)
{
    x = pm_branches_chain(b, "", x, "Conv2d_1a_3x3/2v 32, Conv2d_2a_3x3/1v 32, Conv2d_2b_3x3 64");
    x = pm_branches_pool(b, "MaxPool_3a_3x3", x, "max", 3, 2, true);
    x = pm_branches_chain(b, "", x, "Conv2d_3b_1x1/1v 80, Conv2d_4a_3x3/1v 192");
    return pm_branches_pool(b, "MaxPool_5a_3x3", x, "max", 3, 2, true);
}
