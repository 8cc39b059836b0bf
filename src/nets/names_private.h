/* names_private: one map per family of nets. The rows of a map look like the names themselves. */
#ifndef PM_NAMES_PRIVATE_H
#define PM_NAMES_PRIVATE_H

#include <pumice/names.h>

/* A row: a PyTorch module and the net's module. '#' matches a number, '?' a letter. $1 is the first
 * match, $2+1 the second plus one, $@ the family's own text. A net module that ends in BatchNorm
 * has gamma, beta and moving averages. One that ends in depthwise has depthwise_weights, any other
 * weights and biases. The first row that matches is used. refusal: such modules belong to another
 * net, "is a ... ". */
struct pm_names_row {
    const char *theirs, *ours, *refusal;
    int height, width; /* size of the map that a fully connected layer reads, channels first */
};

struct pm_names_file; /* the file being mapped */
struct pm_names_family {
    const char *scope;   /* prefix of the net's variables */
    const char *nets;    /* for error messages: "resnet50, resnet101 or resnet152" */
    const char *anchors[3]; /* tensors that every such file has; NULL ends the list */
    const struct pm_names_row *rows;
    /* Returns the text for $@ from the numbers in the name. NULL: the row does not match. May be
     * NULL. */
    const char *(*own)(const struct pm_names_file *f, const struct pm_names_row *row,
                       const int number[4]);
    /* Rejects files that the rows cannot reject: wrong shapes or options. May be NULL. */
    int (*check)(const struct pm_names_file *f);
};
struct pm_names_file {
    const struct pm_variables *net;
    const struct pm_names_family *family;
    const struct pm_tensor_file *from;
    struct pm_arena *arena;
    const char *prefix; /* prefix of PyTorch's names, "module." */
};
/* Returns a tensor of the file by its name without the prefix, or NULL. */
const struct pm_file_tensor *pm_names_tensor(const struct pm_names_file *f, const char *format, ...)
    PM_PRINTF(2, 3);
/* Returns a variable of the net by its name, or NULL. */
const struct pm_variable *pm_names_variable(const struct pm_names_file *f, const char *name);
/* Fails with PM_EDATA and "FILE: is a ..., ". */
int pm_names_refuse(const struct pm_names_file *f, const char *format, ...) PM_PRINTF(2, 3);

extern const struct pm_names_family pm_names_resnet, pm_names_vgg, pm_names_mobilenet_v2,
    pm_names_mobilenet_v3, pm_names_inception_v3;

#endif
