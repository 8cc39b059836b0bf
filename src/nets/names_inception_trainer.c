/* names_inception_trainer: the variables' names in the Inception trainer for several GPUs, which is
 * older than TF-Slim, and TF-Slim's names for the same net. A repeated convolution without a name
 * is Conv, Conv_1, Conv_2 in its scope. 96 convolutions with batch norm and two classifiers make
 * 388 variables. The classifiers are fully connected there, [in, out], and 1x1 convolutions in
 * TF-Slim. mixed_17x17x1280a is the original's name of a block of 8x8. */
#include <pumice/names.h>

#include "formats/tensor_format.h"

#include <string.h>

struct row {
    const char *theirs, *ours; /* a last '*' matches the rest of the scope */
    bool dense;                /* fully connected there */
};

/* ---- the table -------------------------------------------------------------------------- */

#define ROW(theirs, ours) { theirs, "InceptionV3/" ours, false }
#define BLOCK_35(theirs, ours, first, second)                                                      \
    ROW(theirs "/branch1x1/Conv", ours "/Branch_0/Conv2d_0a_1x1"),                                 \
        ROW(theirs "/branch5x5/Conv", ours "/Branch_1/" first),                                    \
        ROW(theirs "/branch5x5/Conv_1", ours "/Branch_1/" second),                                 \
        ROW(theirs "/branch3x3dbl/Conv", ours "/Branch_2/Conv2d_0a_1x1"),                          \
        ROW(theirs "/branch3x3dbl/Conv_1", ours "/Branch_2/Conv2d_0b_3x3"),                        \
        ROW(theirs "/branch3x3dbl/Conv_2", ours "/Branch_2/Conv2d_0c_3x3"),                        \
        ROW(theirs "/branch_pool/Conv", ours "/Branch_3/Conv2d_0b_1x1")
#define BLOCK_17(theirs, ours)                                                                     \
    ROW(theirs "/branch1x1/Conv", ours "/Branch_0/Conv2d_0a_1x1"),                                 \
        ROW(theirs "/branch7x7/Conv", ours "/Branch_1/Conv2d_0a_1x1"),                             \
        ROW(theirs "/branch7x7/Conv_1", ours "/Branch_1/Conv2d_0b_1x7"),                           \
        ROW(theirs "/branch7x7/Conv_2", ours "/Branch_1/Conv2d_0c_7x1"),                           \
        ROW(theirs "/branch7x7dbl/Conv", ours "/Branch_2/Conv2d_0a_1x1"),                          \
        ROW(theirs "/branch7x7dbl/Conv_1", ours "/Branch_2/Conv2d_0b_7x1"),                        \
        ROW(theirs "/branch7x7dbl/Conv_2", ours "/Branch_2/Conv2d_0c_1x7"),                        \
        ROW(theirs "/branch7x7dbl/Conv_3", ours "/Branch_2/Conv2d_0d_7x1"),                        \
        ROW(theirs "/branch7x7dbl/Conv_4", ours "/Branch_2/Conv2d_0e_1x7"),                        \
        ROW(theirs "/branch_pool/Conv", ours "/Branch_3/Conv2d_0b_1x1")
#define BLOCK_8(theirs, ours, last)                                                                \
    ROW(theirs "/branch1x1/Conv", ours "/Branch_0/Conv2d_0a_1x1"),                                 \
        ROW(theirs "/branch3x3/Conv", ours "/Branch_1/Conv2d_0a_1x1"),                             \
        ROW(theirs "/branch3x3/Conv_1", ours "/Branch_1/Conv2d_0b_1x3"),                           \
        ROW(theirs "/branch3x3/Conv_2", ours "/Branch_1/" last),                                   \
        ROW(theirs "/branch3x3dbl/Conv", ours "/Branch_2/Conv2d_0a_1x1"),                          \
        ROW(theirs "/branch3x3dbl/Conv_1", ours "/Branch_2/Conv2d_0b_3x3"),                        \
        ROW(theirs "/branch3x3dbl/Conv_2", ours "/Branch_2/Conv2d_0c_1x3"),                        \
        ROW(theirs "/branch3x3dbl/Conv_3", ours "/Branch_2/Conv2d_0d_3x1"),                        \
        ROW(theirs "/branch_pool/Conv", ours "/Branch_3/Conv2d_0b_1x1")

static const struct row rows[] = {
    ROW("conv0", "Conv2d_1a_3x3"),
    ROW("conv1", "Conv2d_2a_3x3"),
    ROW("conv2", "Conv2d_2b_3x3"),
    ROW("conv3", "Conv2d_3b_1x1"),
    ROW("conv4", "Conv2d_4a_3x3"),
    BLOCK_35("mixed_35x35x256a", "Mixed_5b", "Conv2d_0a_1x1", "Conv2d_0b_5x5"),
    BLOCK_35("mixed_35x35x288a", "Mixed_5c", "Conv2d_0b_1x1", "Conv_1_0c_5x5"),
    BLOCK_35("mixed_35x35x288b", "Mixed_5d", "Conv2d_0a_1x1", "Conv2d_0b_5x5"),
    ROW("mixed_17x17x768a/branch3x3/Conv", "Mixed_6a/Branch_0/Conv2d_1a_1x1"),
    ROW("mixed_17x17x768a/branch3x3dbl/Conv", "Mixed_6a/Branch_1/Conv2d_0a_1x1"),
    ROW("mixed_17x17x768a/branch3x3dbl/Conv_1", "Mixed_6a/Branch_1/Conv2d_0b_3x3"),
    ROW("mixed_17x17x768a/branch3x3dbl/Conv_2", "Mixed_6a/Branch_1/Conv2d_1a_1x1"),
    BLOCK_17("mixed_17x17x768b", "Mixed_6b"),
    BLOCK_17("mixed_17x17x768c", "Mixed_6c"),
    BLOCK_17("mixed_17x17x768d", "Mixed_6d"),
    BLOCK_17("mixed_17x17x768e", "Mixed_6e"),
    ROW("mixed_17x17x1280a/branch3x3/Conv", "Mixed_7a/Branch_0/Conv2d_0a_1x1"),
    ROW("mixed_17x17x1280a/branch3x3/Conv_1", "Mixed_7a/Branch_0/Conv2d_1a_3x3"),
    ROW("mixed_17x17x1280a/branch7x7x3/Conv", "Mixed_7a/Branch_1/Conv2d_0a_1x1"),
    ROW("mixed_17x17x1280a/branch7x7x3/Conv_1", "Mixed_7a/Branch_1/Conv2d_0b_1x7"),
    ROW("mixed_17x17x1280a/branch7x7x3/Conv_2", "Mixed_7a/Branch_1/Conv2d_0c_7x1"),
    ROW("mixed_17x17x1280a/branch7x7x3/Conv_3", "Mixed_7a/Branch_1/Conv2d_1a_3x3"),
    BLOCK_8("mixed_8x8x2048a", "Mixed_7b", "Conv2d_0b_3x1"),
    BLOCK_8("mixed_8x8x2048b", "Mixed_7c", "Conv2d_0c_3x1"),
    ROW("aux_logits/proj", "AuxLogits/Conv2d_1b_1x1"),
    ROW("aux_logits/Conv", "AuxLogits/Conv2d_2a_*"), /* 5x5, or the size of a smaller map */
    { "aux_logits/FC", "InceptionV3/AuxLogits/Conv2d_2b_1x1", true },
    { "logits/logits", "InceptionV3/Logits/Conv2d_1c_1x1", true },
};

/* ---- names ------------------------------------------------------------------------------ */

/* Returns the rest of a name behind the scope, "/weights". NULL if the name has another scope. */
static const char *behind(const char *name, const char *scope)
{
    const size_t n = strcspn(scope, "*");

    if (strncmp(name, scope, n) != 0)
        return NULL;
    name += scope[n] ? n + strcspn(name + n, "/") : n;
    return *name == '/' ? name : NULL;
}

/* A file under the other names. */
struct renaming {
    struct pm_tensor_file *from; /* owned once the file is made */
    bool to_theirs;
};

/* Returns the name on the other side and its row; the same name and NULL if there is no row. */
static const char *other_name(const struct renaming *r, const char *name, struct pm_arena *a,
                              const struct row **row)
{
    for (size_t i = 0; i < PM_COUNT(rows); i++) {
        const char *rest = behind(name, r->to_theirs ? rows[i].ours : rows[i].theirs);
        const char *to = r->to_theirs ? rows[i].theirs : rows[i].ours;
        char size[32] = "";

        if (!rest)
            continue;
        *row = &rows[i];
        if (strchr(to, '*')) {
            const struct pm_file_tensor *t =
                pm_tensor_file_find(r->from, "aux_logits/Conv/weights");
            const bool whole = t && t->rank == 4;

            snprintf(size, sizeof size, "%dx%d", whole ? (int)t->dim[0] : 5,
                     whole ? (int)t->dim[1] : 5);
        }
        return pm_arena_printf(a, "%.*s%s%s", (int)strcspn(to, "*"), to, size, rest);
    }
    *row = NULL;
    return name;
}

/* ---- the file --------------------------------------------------------------------------- */

static int read_renamed(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                        uint64_t begin, size_t size, void *dst)
{
    const struct renaming *r = f->own;

    return pm_tensor_file_bytes(r->from, pm_tensor_file_get(r->from, (size_t)t->source), begin,
                                size, dst);
}

static void close_renamed(struct pm_tensor_file *f)
{
    struct renaming *r = f->own;

    pm_tensor_file_close(&r->from);
    pm_free(r);
}

/* Changes the shape of a classifier's weights: [in, out] there, [1, 1, in, out] here. */
static void reshape(const struct renaming *r, struct pm_file_tensor *t)
{
    if (r->to_theirs && t->rank == 4 && t->dim[0] == 1 && t->dim[1] == 1) {
        t->rank = 2;
        t->dim[0] = t->dim[2];
        t->dim[1] = t->dim[3];
        t->dim[2] = t->dim[3] = 0;
    } else if (!r->to_theirs && t->rank == 2) {
        t->rank = 4;
        t->dim[2] = t->dim[0];
        t->dim[3] = t->dim[1];
        t->dim[0] = t->dim[1] = 1;
    }
}

static int rename_all(struct pm_tensor_file *from, bool to_theirs, struct pm_tensor_file **out)
{
    struct pm_arena *arena = pm_arena_create();
    struct pm_tensor_file *to = pm_tensor_file_make(from->path, from->format);
    struct renaming *r = pm_calloc(1, sizeof *r);
    const struct row *row;
    int err = PM_OK;

    *r = (struct renaming){ from, to_theirs };
    to->own = r;
    to->read = read_renamed;
    for (size_t i = 0; i + 1 < from->meta_count; i += 2)
        pm_tensor_file_add_meta(to, from->meta[i], from->meta[i + 1]);
    PM_TRY(pm_tensor_file_memory(to, to->path, NULL, pm_tensor_file_size(from), NULL));
    for (size_t i = 0; i < pm_tensor_file_count(from); i++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(from, i);
        struct pm_file_tensor *x =
            pm_tensor_file_add(to, other_name(r, t->name, arena, &row));
        const char *name = x->name;

        *x = *t;
        x->name = name;
        x->source = (int)i;
        if (row && row->dense)
            reshape(r, x);
    }
    PM_TRY(pm_tensor_file_finish(to));
    to->close = close_renamed;
    *out = to, to = NULL;
out:
    if (to)
        pm_free(r);
    pm_tensor_file_close(&to);
    pm_arena_destroy(&arena);
    return err;
}

bool pm_names_are_inception_trainer(const struct pm_tensor_file *f)
{
    return pm_tensor_file_find(f, "conv0/weights") &&
           pm_tensor_file_find(f, "mixed_35x35x256a/branch1x1/Conv/weights");
}

int pm_names_from_inception_trainer(struct pm_tensor_file *f, struct pm_tensor_file **out)
{
    return rename_all(f, false, out);
}

int pm_names_to_inception_trainer(struct pm_tensor_file *f, struct pm_tensor_file **out)
{
    if (!pm_tensor_file_find(f, "InceptionV3/Conv2d_1a_3x3/weights"))
        return pm_fail(PM_EDATA,
                       "%s: there is no tensor 'InceptionV3/Conv2d_1a_3x3/weights': only the "
                       "variables of inception_v3 have names in the Inception trainer",
                       pm_tensor_file_path(f));
    return rename_all(f, true, out);
}
