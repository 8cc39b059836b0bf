/* Builds ONNX messages field by field, with the field numbers of onnx.proto. Shares no code with
 * the writer. */
#ifndef ONNX_BYTES_H
#define ONNX_BYTES_H

#include <base/unit.h>
#include <pumice/onnx.h>

/* put_inner frees the message that it embeds. */

static inline void put_number(struct pm_str *s, uint64_t v)
{
    do {
        const uint8_t byte = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
        pm_str_bytes(s, &byte, 1);
        v >>= 7;
    } while (v);
}

static inline void put_int(struct pm_str *s, unsigned field, uint64_t v)
{
    put_number(s, field << 3);
    put_number(s, v);
}

static inline void put_bytes(struct pm_str *s, unsigned field, const void *bytes, size_t size)
{
    put_number(s, field << 3 | 2);
    put_number(s, size);
    pm_str_bytes(s, bytes, size);
}

static inline void put_text(struct pm_str *s, unsigned field, const char *text)
{
    put_bytes(s, field, text, strlen(text));
}

static inline void put_float(struct pm_str *s, unsigned field, float v)
{
    put_number(s, field << 3 | 5);
    pm_str_bytes(s, &v, 4);
}

static inline void put_double(struct pm_str *s, unsigned field, double v)
{
    put_number(s, field << 3 | 1);
    pm_str_bytes(s, &v, 8);
}

static inline void put_inner(struct pm_str *s, unsigned field, struct pm_str *inner)
{
    put_bytes(s, field, inner->text, inner->length);
    pm_str_free(inner);
    *inner = (struct pm_str){ 0 };
}

static inline void put_pair(struct pm_str *s, unsigned field, const char *key, const char *value)
{
    struct pm_str entry = { 0 };

    put_text(&entry, 1, key);
    put_text(&entry, 2, value);
    put_inner(s, field, &entry);
}

/* dims, type and name of a tensor; the caller adds the data. */
static inline struct pm_str tensor_of(const char *name, unsigned type, int rank, const int64_t *dim)
{
    struct pm_str t = { 0 };

    for (int i = 0; i < rank; i++)
        put_int(&t, 1, (uint64_t)dim[i]);
    put_int(&t, 2, type);
    put_text(&t, 8, name);
    return t;
}

/* A model with IR version, graph and opset. */
static inline struct pm_str model_of(unsigned ir_version, struct pm_str *graph, unsigned opset)
{
    struct pm_str m = { 0 }, o = { 0 };

    put_int(&m, 1, ir_version);
    put_inner(&m, 7, graph);
    put_int(&o, 2, opset);
    put_inner(&m, 8, &o);
    return m;
}

/* A model with one initializer. */
static inline struct pm_str model_with(struct pm_str *tensor)
{
    struct pm_str g = { 0 };

    put_text(&g, 2, "g");
    put_inner(&g, 5, tensor);
    return model_of(8, &g, 17);
}

/* Reads a copy of exactly these bytes, so that the sanitizer detects a read beyond them. The
 * copy lives until close_bytes. */
static inline int read_bytes(const struct pm_str *bytes, struct pm_onnx_model **m, uint8_t **copy)
{
    *m = NULL;
    *copy = pm_malloc(bytes->length);
    if (bytes->length)
        memcpy(*copy, bytes->text, bytes->length);
    return pm_onnx_read_memory("bytes", *copy, bytes->length, m);
}

static inline void close_bytes(struct pm_onnx_model **m, uint8_t *copy)
{
    pm_onnx_close(m);
    pm_free(copy);
}

#endif
