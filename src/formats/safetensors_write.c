/* safetensors, writing: the header has a fixed order and spelling, so that equal contents give
 * equal bytes. The file appears complete or not at all. */
#include "formats/tensor_format.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int by_size_and_name(const void *a, const void *b)
{
    const struct pm_file_tensor *x = *(const struct pm_file_tensor *const *)a;
    const struct pm_file_tensor *y = *(const struct pm_file_tensor *const *)b;
    size_t n = pm_dtype_size(x->type), m = pm_dtype_size(y->type);

    return n != m ? (n < m) - (n > m) : strcmp(x->name, y->name);
}

static void add_quoted(struct pm_str *s, const char *text)
{
    pm_str_add(s, "\"");
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\')
            pm_str_add(s, "\\%c", *p);
        else if ((unsigned char)*p < 0x20)
            pm_str_add(s, "\\u%04x", (unsigned)*p);
        else
            pm_str_bytes(s, p, 1);
    }
    pm_str_add(s, "\"");
}

static void make_header(struct pm_str *h, const struct pm_file_tensor *const *order, size_t count,
                        const char *const *meta)
{
    uint64_t at = 0;
    const char *comma = "";

    pm_str_add(h, "{");
    if (meta && meta[0]) {
        pm_str_add(h, "\"__metadata__\":{");
        for (size_t i = 0; meta[i]; i += 2) {
            pm_str_add(h, "%s", i ? "," : "");
            add_quoted(h, meta[i]);
            pm_str_add(h, ":");
            add_quoted(h, meta[i + 1]);
        }
        pm_str_add(h, "}");
        comma = ",";
    }
    for (size_t i = 0; i < count; i++, comma = ",") {
        const struct pm_file_tensor *t = order[i];
        pm_str_add(h, "%s", comma);
        add_quoted(h, t->name);
        pm_str_add(h, ":{\"dtype\":\"%s\",\"shape\":[", pm_dtype_name(t->type));
        for (int k = 0; k < t->rank; k++)
            pm_str_add(h, "%s%lld", k ? "," : "", (long long)t->dim[k]);
        pm_str_add(h, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
                   (unsigned long long)(at + pm_file_tensor_bytes(t)));
        at += pm_file_tensor_bytes(t);
    }
    pm_str_add(h, "}");
    while (h->length % 8) /* data starts at a multiple of 8 */
        pm_str_add(h, " ");
}

struct sink {
    struct pm_new_file file;
    struct pm_sha256 sha;
};

static int put(struct sink *k, const void *data, size_t size)
{
    pm_sha256_add(&k->sha, data, size);
    return pm_new_file_add(&k->file, data, size);
}

static int put_all(struct sink *k, const struct pm_file_tensor *const *order, size_t count,
                   const char *const *meta)
{
    int err = PM_OK;
    struct pm_str header = { 0 };
    struct pm_fill_buffer elements = { 0 };
    const void *data;
    uint8_t head[8];

    make_header(&header, order, count, meta);
    for (int i = 0; i < 8; i++)
        head[i] = (uint8_t)((uint64_t)header.length >> 8 * i);
    PM_TRY(put(k, head, 8));
    PM_TRY(put(k, header.text, header.length));
    for (size_t i = 0; i < count; i++) {
        PM_TRY(pm_file_tensor_elements(order[i], &elements, &data));
        PM_TRY(put(k, data, (size_t)pm_file_tensor_bytes(order[i])));
    }
out:
    pm_str_free(&header);
    pm_free(elements.data);
    return err;
}

int pm_safetensors_write(const char *path, const struct pm_file_tensor *tensors, size_t count,
                         const char *const *meta, char sha256[65])
{
    int err = PM_OK;
    const struct pm_file_tensor **order = pm_malloc((count + 1) * sizeof *order);
    struct sink k = { .file.fd = -1 };

    for (size_t i = 0; i < count; i++)
        order[i] = &tensors[i];
    qsort(order, count, sizeof *order, by_size_and_name);
    for (size_t i = 0; i < count; i++)
        assert(order[i]->type != PM_DTYPE_OTHER);
    pm_sha256_start(&k.sha);
    PM_TRY(pm_new_file_open(&k.file, path));
    PM_TRY(put_all(&k, order, count, meta));
    PM_TRY(pm_new_file_commit(&k.file));
    if (sha256)
        pm_sha256_end(&k.sha, sha256);
out:
    pm_new_file_abandon(&k.file);
    pm_free(order);
    return err;
}
