/* Writes a file as torch.save(torchvision.models.resnet18().state_dict()) does: a zip archive with
 * the pickle of an ordered dict of tensors, and one entry for the numbers of each. The numbers are
 * drawn. A file of torchvision itself reads the same (docs/checkpoints.md). */
#ifndef TORCH_RESNET_H
#define TORCH_RESNET_H

#include <pumice/base.h>
#include <pumice/rng.h>

struct torch_file {
    struct pm_str zip, directory, pickle;
    struct pm_rng rng;
    int entries, tensors;
};

static inline void torch_number(struct pm_str *s, uint64_t v, int bytes)
{
    for (; bytes > 0; bytes--, v >>= 8)
        pm_str_bytes(s, &(uint8_t){ (uint8_t)v }, 1);
}

/* Adds an entry without compression. torch.save does not always write checksums; 0 means none. */
static inline void torch_entry(struct torch_file *f, const char *name, const void *data,
                               size_t size)
{
    const size_t at = f->zip.length, n = strlen(name);

    pm_str_bytes(&f->zip, "PK\3\4\0\0\0\0\0\0\0\0\0\0", 14);
    torch_number(&f->zip, 0, 4), torch_number(&f->zip, size, 4), torch_number(&f->zip, size, 4);
    torch_number(&f->zip, n, 2), torch_number(&f->zip, 0, 2);
    pm_str_bytes(&f->zip, name, n);
    pm_str_bytes(&f->zip, data, size);
    pm_str_bytes(&f->directory, "PK\1\2\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    torch_number(&f->directory, 0, 4);
    torch_number(&f->directory, size, 4), torch_number(&f->directory, size, 4);
    torch_number(&f->directory, n, 2), torch_number(&f->directory, 0, 12);
    torch_number(&f->directory, at, 4);
    pm_str_bytes(&f->directory, name, n);
    f->entries++;
}

static inline void torch_text(struct pm_str *s, const char *text)
{
    pm_str_bytes(s, "X", 1);
    torch_number(s, strlen(text), 4);
    pm_str_bytes(s, text, strlen(text));
}

static inline void torch_int(struct pm_str *s, int v)
{
    pm_str_bytes(s, "J", 1);
    torch_number(s, (uint64_t)(uint32_t)v, 4);
}

/* Adds a tensor to the dict, and its numbers, drawn from low..high, as an entry. */
static inline void torch_tensor(struct torch_file *f, const char *name, int rank, const int *dim,
                                float low, float high)
{
    struct pm_str *p = &f->pickle;
    const char *type = strstr(name, "num_batches") ? "LongStorage" : "FloatStorage";
    char key[16], entry[40];
    int count = 1, stride[4] = { 1, 1, 1, 1 };

    for (int i = rank; i-- > 0; count *= dim[i])
        stride[i] = count;
    snprintf(key, sizeof key, "%d", f->tensors++);
    torch_text(p, name);
    pm_str_add(p, "ctorch._utils\n_rebuild_tensor_v2\n((");
    torch_text(p, "storage");
    pm_str_add(p, "ctorch\n%s\n", type);
    torch_text(p, key);
    torch_text(p, "cpu");
    torch_int(p, count);
    pm_str_add(p, "tQ");
    torch_int(p, 0);
    pm_str_add(p, "(");
    for (int i = 0; i < rank; i++)
        torch_int(p, dim[i]);
    pm_str_add(p, "t(");
    for (int i = 0; i < rank; i++)
        torch_int(p, stride[i]);
    pm_str_add(p, "t\x89" "ccollections\nOrderedDict\n)RtR");
    const size_t size = (size_t)count * (type[0] == 'L' ? 8 : 4);
    char *data = pm_calloc(1, size);
    for (int i = 0; type[0] == 'F' && i < count; i++)
        ((float *)(void *)data)[i] = low + (high - low) * pm_rng_uniform(&f->rng);
    snprintf(entry, sizeof entry, "archive/data/%s", key);
    torch_entry(f, entry, data, size);
    pm_free(data);
}

static inline void torch_conv_bn(struct torch_file *f, const char *scope, const char *conv,
                                 const char *bn, int out, int in, int kernel)
{
    static const struct { const char *name; float low, high; } parts[] = {
        { "weight", 0.5F, 1 }, { "bias", 0, 0.1F }, { "running_mean", 0, 0.1F },
        { "running_var", 0.5F, 1 },
    };
    char name[100];

    snprintf(name, sizeof name, "%s%s.weight", scope, conv);
    torch_tensor(f, name, 4, (const int[]){ out, in, kernel, kernel }, -0.02F, 0.02F);
    for (size_t i = 0; i < PM_COUNT(parts); i++) {
        snprintf(name, sizeof name, "%s%s.%s", scope, bn, parts[i].name);
        torch_tensor(f, name, 1, &out, parts[i].low, parts[i].high);
    }
    snprintf(name, sizeof name, "%s%s.num_batches_tracked", scope, bn);
    torch_tensor(f, name, 0, NULL, 0, 0);
}

/* Returns the file's bytes. Free with pm_str_free. */
static inline struct pm_str torch_resnet18(uint64_t seed)
{
    struct torch_file f = { .rng = pm_rng_make(seed, 1, 0, 0) };
    char scope[40];

    pm_str_add(&f.pickle, "\x80\x02" "ccollections\nOrderedDict\n)R(");
    torch_conv_bn(&f, "", "conv1", "bn1", 64, 3, 7);
    for (int block = 0, in = 64; block < 4; block++)
        for (int i = 0; i < 2; i++) {
            const int out = 64 << block;
            snprintf(scope, sizeof scope, "layer%d.%d.", block + 1, i);
            torch_conv_bn(&f, scope, "conv1", "bn1", out, in, 3);
            torch_conv_bn(&f, scope, "conv2", "bn2", out, out, 3);
            if (in != out)
                torch_conv_bn(&f, scope, "downsample.0", "downsample.1", out, in, 1);
            in = out;
        }
    torch_tensor(&f, "fc.weight", 2, (const int[]){ 1000, 512 }, -0.02F, 0.02F);
    torch_tensor(&f, "fc.bias", 1, (const int[]){ 1000 }, -0.02F, 0.02F);
    pm_str_add(&f.pickle, "u.");
    torch_entry(&f, "archive/data.pkl", f.pickle.text, f.pickle.length);
    torch_entry(&f, "archive/version", "3\n", 2);
    const size_t at = f.zip.length, size = f.directory.length;
    pm_str_bytes(&f.zip, f.directory.text, size);
    pm_str_bytes(&f.zip, "PK\5\6\0\0\0\0", 8);
    torch_number(&f.zip, (uint64_t)f.entries, 2), torch_number(&f.zip, (uint64_t)f.entries, 2);
    torch_number(&f.zip, size, 4), torch_number(&f.zip, at, 4), torch_number(&f.zip, 0, 2);
    pm_str_free(&f.directory);
    pm_str_free(&f.pickle);
    return f.zip;
}

#endif
