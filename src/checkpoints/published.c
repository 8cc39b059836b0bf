/* published: the table of published checkpoints, and finding a row in it. */
#include "checkpoints/published.h"

#include <string.h>

#define IMAGENET "imagenet"
#define TORCHVISION(id, its_net, file, digits, more)                                               \
    { .name = "torchvision_" #id, .net = #its_net, .conventions = "torch",                         \
      .preprocessing = "torch", .settings = more, .classes = 1000, .data = IMAGENET,               \
      .address = "https://download.pytorch.org/models/" file "-" digits ".pth",                    \
      .sha256 = digits, .licence = "BSD-3-Clause" },
#define TENSORFLOW(id, its_net, source, outputs, trained, more, path, part)                        \
    { .name = id, .net = #its_net, .conventions = "tensorflow", .preprocessing = source,           \
      .settings = more, .classes = outputs, .data = trained,                                       \
      .address = "https://storage.googleapis.com/" path, .sha256 = "", .inside = part,             \
      .licence = "Apache-2.0" },
/* The tables name most archives as http://download.tensorflow.org/models/..., which is this
 * storage without encryption. Nothing else protects files without a published digest. */
#define MODELS "download.tensorflow.org/models/"
#define SLIM(id, its_net, source, outputs, archive)                                                \
    TENSORFLOW("slim_" #id, its_net, source, outputs, IMAGENET, "", MODELS archive, NULL)
#define MOBILENET(id, its_net, path, part)                                                         \
    TENSORFLOW("slim_" #id, its_net, "inception", 1001, IMAGENET, "", path, part)
#define DEEPLAB(id, its_net, outputs, trained, more, archive)                                      \
    TENSORFLOW("deeplab_" #id, its_net, "deeplab", outputs, trained, more, MODELS archive, NULL)
#define BACKBONE(its_net, row)
static const struct pm_published rows[] = {
#include "checkpoints/published.def"
};
#undef TORCHVISION
#undef SLIM
#undef MOBILENET
#undef DEEPLAB
#undef BACKBONE

#define TORCHVISION(...)
#define SLIM(...)
#define MOBILENET(...)
#define DEEPLAB(...)
#define BACKBONE(its_net, its_row) { #its_net, #its_row },
static const struct pm_published_backbone backbones[] = {
#include "checkpoints/published.def"
    { NULL, NULL },
};

const struct pm_published *pm_published_rows(size_t *count)
{
    *count = PM_COUNT(rows);
    return rows;
}

const struct pm_published_backbone *pm_published_backbones(void)
{
    return backbones;
}

const char *pm_published_file_name(const struct pm_published *p)
{
    return strrchr(p->address, '/') + 1;
}

bool pm_published_is_packed(const struct pm_published *p)
{
    return pm_ends_with(p->address, ".tar.gz") || pm_ends_with(p->address, ".tgz");
}

int pm_published_find(const char *name, const struct pm_published **out)
{
    const char *names[PM_COUNT(rows)], *near;

    for (size_t i = 0; i < PM_COUNT(rows); i++) {
        names[i] = rows[i].name;
        if (strcmp(names[i], name) == 0) {
            *out = &rows[i];
            return PM_OK;
        }
    }
    near = pm_nearest(name, names, PM_COUNT(rows));
    return pm_fail(PM_ECONFIG,
                   "checkpoint download: no published checkpoint '%s'%s%s%s; 'pumice checkpoint "
                   "download list' prints all",
                   name, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* ---- init.checkpoint "imagenet" ---------------------------------------------------------- */

/* The first row of the net that was trained on ImageNet alone, or the row of its backbone. */
const struct pm_published *pm_published_first(const char *net, const char *conventions)
{
    for (size_t i = 0; i < PM_COUNT(rows); i++)
        if (strcmp(rows[i].net, net) == 0 && strcmp(rows[i].data, IMAGENET) == 0 &&
            (!conventions || strcmp(rows[i].conventions, conventions) == 0))
            return &rows[i];
    for (const struct pm_published_backbone *b = backbones; b->net; b++)
        for (size_t i = 0; strcmp(b->net, net) == 0 && i < PM_COUNT(rows); i++)
            if (strcmp(rows[i].name, b->row) == 0 &&
                (!conventions || strcmp(rows[i].conventions, conventions) == 0))
                return &rows[i];
    return NULL;
}

/* Lists the nets that have a row, each once. */
static void add_nets(struct pm_str *text)
{
    for (size_t i = 0; i < PM_COUNT(rows); i++) {
        bool listed = strcmp(rows[i].data, IMAGENET) != 0;
        for (size_t k = 0; k < i && !listed; k++)
            listed = strcmp(rows[k].net, rows[i].net) == 0;
        if (!listed)
            pm_str_add(text, "%s%s", text->length ? ", " : "", rows[i].net);
    }
    for (const struct pm_published_backbone *b = backbones; b->net; b++)
        pm_str_add(text, ", %s", b->net);
}

int pm_published_for(const char *net, const char *conventions, const char *where,
                     const struct pm_published **out)
{
    const struct pm_published *other = net ? pm_published_first(net, NULL) : NULL;
    struct pm_str nets = { 0 };
    int err;

    *out = net ? pm_published_first(net, conventions) : NULL;
    if (*out)
        return PM_OK;
    if (other)
        return pm_fail(PM_ECONFIG,
                       "%s: the published ImageNet checkpoint of %s is one of model.conventions "
                       "\"%s\": set model.conventions=%s",
                       where, net, other->conventions, other->conventions);
    add_nets(&nets);
    err = pm_fail(PM_ECONFIG,
                  "%s: %s%s has no published ImageNet checkpoint; nets that have one: %s. For a "
                  "file or folder of this name write ./" PM_PUBLISHED_IMAGENET,
                  where, net ? "model.name " : "a net without model.name", net ? net : "",
                  nets.text);
    pm_str_free(&nets);
    return err;
}
