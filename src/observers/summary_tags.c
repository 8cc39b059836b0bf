/* summary_tags: summary_tags.h has the contract.
 *
 * A row is our tag and the other programs'. A `*` in our tag stands for any text, which takes the
 * place of the `*` in theirs; `#` there stands for the same text as the name of an end point. The
 * first row that fits counts. "total_loss__raw_" is how TensorFlow writes the Inception trainer's
 * name "total_loss (raw)". */
#include "observers/summary_tags.h"

#include <pumice/base.h>

#include <ctype.h>
#include <string.h>

struct row {
    const char *own, *slim, *inception, *deeplab; /* NULL: the program has no such value */
};

static const struct row rows[] = {
    { "total_loss", "total_loss", "total_loss__raw_", "total_loss" },
    { "losses/loss", "losses/softmax_cross_entropy_loss/value", "loss__raw_", NULL },
    { "losses/aux_loss", "losses/aux_loss/value", "aux_loss__raw_", NULL },
    { "losses/clone_loss", "Losses/clone_loss", NULL, "losses/clone_loss" },
    { "losses/regularization_loss", "Losses/regularization_loss", NULL, NULL },
    { "losses/*", NULL, "*__raw_", NULL },
    { "loss_averages/*", NULL, "*", NULL },
    { "activations/*", "activations/#", "#/activations", NULL },
    { "sparsity/*", "sparsity/#", "#/sparsity", NULL },
    { "images/image*", "final_distorted_image/image*", "images/image*", "samples/image/image*" },
    { "images/original*", "image_with_bounding_boxes/image*", "image_with_bounding_boxes/image*",
      NULL },
    { "images/label_instance_center*", NULL, NULL, "samples/label_instance_center/image*" },
    { "images/label_offset*", NULL, NULL, "samples/label_offset/image*" },
    { "images/label_edge*", NULL, NULL, NULL },
    { "images/label*", NULL, NULL, "samples/label/image*" },
    { "images/semantic*", NULL, NULL, "samples/semantic/image*" },
    { "images/instance_center*", NULL, NULL, "samples/instance_center/image*" },
    { "images/instance_offset*", NULL, NULL, "samples/instance_offset/image*" },
    { "*/gradients", "*/gradient", "*/gradients", NULL },
};

/* Returns whether the tag fits a row. *rest, of *length, is the text in the place of the `*`. */
static bool fits(const char *own, const char *tag, const char **rest, size_t *length)
{
    const size_t before = strcspn(own, "*"), n = strlen(tag);
    const char *after = own[before] ? own + before + 1 : "";
    const size_t tail = strlen(after);

    if (!own[before])
        return strcmp(own, tag) == 0;
    if (n < before + tail || strncmp(own, tag, before) != 0 ||
        strcmp(tag + n - tail, after) != 0)
        return false;
    *rest = tag + before;
    *length = n - before - tail;
    return true;
}

static bool ends_in(const char *text, size_t length, const char *end)
{
    const size_t n = strlen(end);

    return length > n && memcmp(text + length - n, end, n) == 0;
}

/* End points that are not named like the layer. scope: the beginning of the net's scope. `#` is a
 * number, to which add is added. In MobileNet v2 the projection is the block's output where the
 * block has no sum; layers without an end point there keep our name. */
static const struct {
    const char *scope, *own, *theirs;
    int add;
} points[] = {
    { "MobilenetV2", "Conv_1", "layer_19", 0 },
    { "MobilenetV2", "expanded_conv/project", "layer_2/output", 0 },
    { "MobilenetV2", "expanded_conv_1/project", "layer_3/output", 0 },
    { "MobilenetV2", "expanded_conv_3/project", "layer_5/output", 0 },
    { "MobilenetV2", "expanded_conv_6/project", "layer_8/output", 0 },
    { "MobilenetV2", "expanded_conv_10/project", "layer_12/output", 0 },
    { "MobilenetV2", "expanded_conv_13/project", "layer_15/output", 0 },
    { "MobilenetV2", "expanded_conv_16/project", "layer_18/output", 0 },
    { "MobilenetV", "Conv", "layer_1", 0 },
    { "MobilenetV", "expanded_conv/depthwise", "layer_2/depthwise_output", 0 },
    { "MobilenetV", "expanded_conv/output", "layer_2/output", 0 },
    { "MobilenetV", "expanded_conv_#/expand", "layer_#/expansion_output", 2 },
    { "MobilenetV", "expanded_conv_#/depthwise", "layer_#/depthwise_output", 2 },
    { "MobilenetV", "expanded_conv_#/output", "layer_#/output", 2 },
    { "cell_stem_1", "cell_output", "Stem", 0 },
    { "cell_#", "cell_output", "Cell_#", 0 },
    { "reduction_cell_#", "cell_output", "Reduction_Cell_#", 0 },
    { "final_layer", "global_pool", "global_pool", 0 },
    { "final_layer", "FC", "Logits", 0 },
};

/* Returns whether a text of this length is like the pattern, whose `#` is a number. part: the text
 * may go on after the pattern. */
static bool is_like(const char *pattern, const char *text, size_t length, bool part, int *number)
{
    const char *end = text + length;

    for (; *pattern && text < end; pattern++) {
        if (*pattern == '#') {
            if (!isdigit((unsigned char)*text))
                return false;
            for (*number = 0; text < end && isdigit((unsigned char)*text) && *number < 10000;)
                *number = *number * 10 + *text++ - '0';
        } else if (*pattern != *text++) {
            return false;
        }
    }
    return !*pattern && (part || text == end);
}

/* Appends the name of an end point of the table; false if it has none. */
static bool add_listed(struct pm_str *out, const char *layer, size_t length)
{
    const size_t scope = strcspn(layer, "/");
    int number = 0;

    for (size_t i = 0; scope < length && i < PM_COUNT(points); i++) {
        const bool net = isupper((unsigned char)points[i].scope[0]) != 0;

        if (!is_like(points[i].scope, layer, scope, net, &number) ||
            !is_like(points[i].own, layer + scope + 1, length - scope - 1, false, &number))
            continue;
        for (const char *c = points[i].theirs; *c; c++)
            if (*c == '#')
                pm_str_add(out, "%d", number + points[i].add);
            else
                pm_str_add(out, "%c", *c);
        return true;
    }
    return false;
}

/* Appends the end point's name of a layer. The nets whose scope has capital letters name end points
 * without the scope ("Mixed_5b"), the others with it ("vgg_16/conv1/conv1_1"). The last node of an
 * end point has a name of its own here. */
static void add_end_point(struct pm_str *out, const char *layer, size_t length)
{
    static const char *const last[] = { "/BatchNorm", "/concat", "/SpatialSqueeze" };
    const size_t scope = strcspn(layer, "/");
    bool capital = false;

    for (size_t i = 0; i < PM_COUNT(last); i++)
        if (ends_in(layer, length, last[i]))
            length -= strlen(last[i]);
    if (add_listed(out, layer, length))
        return;
    for (size_t i = 0; i < scope; i++)
        capital |= isupper((unsigned char)layer[i]) != 0;
    if (capital && scope < length)
        layer += scope + 1, length -= scope + 1;
    pm_str_add(out, "%.*s", (int)length, layer);
}

static const char *of_program(const struct row *r, enum pm_summary_tags program)
{
    return program == PM_TAGS_SLIM        ? r->slim
           : program == PM_TAGS_INCEPTION ? r->inception
           : program == PM_TAGS_DEEPLAB   ? r->deeplab
                                          : NULL;
}

void pm_summary_tag(enum pm_summary_tags program, const char *own, struct pm_str *out)
{
    const char *theirs = NULL, *rest = "";
    size_t length = 0, i = 0;

    while (i < PM_COUNT(rows) && !fits(rows[i].own, own, &rest, &length))
        i++;
    if (i < PM_COUNT(rows))
        theirs = of_program(&rows[i], program);
    out->length = 0;
    for (const char *c = theirs ? theirs : own; *c; c++)
        if (theirs && *c == '*')
            pm_str_add(out, "%.*s", (int)length, rest);
        else if (theirs && *c == '#')
            add_end_point(out, rest, length);
        else
            pm_str_add(out, "%c", *c);
}
