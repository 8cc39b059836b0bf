/* names_private: a map per family of nets, in rows that read like the names themselves. */
#ifndef PM_NAMES_PRIVATE_H
#define PM_NAMES_PRIVATE_H

#include <pumice/names.h>

/* A module of PyTorch's and ours: '#' is a number, '?' a letter; $1 is the first of them, $2+1 the
 * second plus one, $@ the family's own. An ours that ends in BatchNorm has gamma, beta and moving
 * averages, in depthwise depthwise_weights, any other weights and biases. The first row that fits
 * counts. refusal: such modules belong to another net, "is a ... ". */
struct pm_names_row {
    const char *theirs, *ours, *refusal;
    int height, width; /* of the map that a fully connected layer's inputs are, channels first */
};

struct pm_names_file; /* being mapped */
struct pm_names_family {
    const char *scope;   /* our variables' names begin so */
    const char *nets;    /* for messages: "resnet50, resnet101 or resnet152" */
    const char *anchors[3]; /* a tensor that every such file has; NULL ends */
    const struct pm_names_row *rows;
    /* Text for $@ from the numbers in the name; NULL: the row does not fit. May be NULL. */
    const char *(*own)(const struct pm_names_file *f, const struct pm_names_row *row,
                       const int number[4]);
    /* Refuses what the rows cannot: shapes, options. May be NULL. */
    int (*check)(const struct pm_names_file *f);
};
struct pm_names_file {
    const struct pm_variables *net;
    const struct pm_names_family *family;
    const struct pm_tensor_file *from;
    struct pm_arena *arena;
    const char *prefix; /* of PyTorch's names, "module." */
};
/* A tensor of the file by its name without the prefix, or NULL. */
const struct pm_file_tensor *pm_names_tensor(const struct pm_names_file *f, const char *format, ...)
    PM_PRINTF(2, 3);
/* A variable of the net by its name, or NULL. */
const struct pm_variable *pm_names_variable(const struct pm_names_file *f, const char *name);
/* "FILE: is a ..., ", PM_EDATA. */
int pm_names_refuse(const struct pm_names_file *f, const char *format, ...) PM_PRINTF(2, 3);

extern const struct pm_names_family pm_names_resnet, pm_names_vgg, pm_names_mobilenet_v2,
    pm_names_mobilenet_v3, pm_names_inception_v3;

#endif
