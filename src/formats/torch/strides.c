/* Reads tensors that are not contiguous in the file: transposed, sliced, expanded, overlapping.
 *
 * Callers read such a tensor in pieces, and neighbouring elements may be far apart in the file.
 * Therefore a block of elements is read at once in storage order, through a window that moves over
 * the file, and the block is kept for the next call. */
#include "formats/torch/torch.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCK = 16 << 20, WINDOW = 64 << 10 };

/* One dimension of a block: its strides in the storage and in the block, in elements. */
struct dimension {
    uint64_t count, from, to;
};
struct block {
    struct dimension dims[PM_FILE_MAX_RANK]; /* by falling stride in the storage */
    int rank;
    uint64_t start;        /* in the storage, from the view's storage's first byte, in elements */
    uint64_t first, count; /* of the tensor's elements */
    bool dense;            /* the gaps between its elements are small */
};
/* The file's bytes at..at+size-1. */
struct window {
    uint64_t at;
    size_t size;
    uint8_t bytes[WINDOW];
};

static void add_dimension(struct block *b, uint64_t count, uint64_t from, uint64_t to)
{
    int i = b->rank;

    if (count == 1)
        return;
    for (; i > 0 && b->dims[i - 1].from < from; i--)
        b->dims[i] = b->dims[i - 1];
    b->dims[i] = (struct dimension){ count, from, to };
    b->rank++;
}

/* The block that holds element `element`: whole inner dimensions and as many of the next as fit. */
static struct block choose_block(const struct pm_torch_view *v, uint64_t element)
{
    struct block b = { .start = v->first };
    uint64_t room = MAX_BLOCK / v->type->size, inner = 1, span = 1, outer;
    int i = v->rank;

    for (; i > 0 && inner * (uint64_t)v->dim[i - 1] <= room; i--) {
        add_dimension(&b, (uint64_t)v->dim[i - 1], (uint64_t)v->stride[i - 1], inner);
        inner *= (uint64_t)v->dim[i - 1];
    }
    b.first = element - element % inner;
    b.count = inner;
    outer = element / inner;
    if (i-- > 0) {
        uint64_t size = (uint64_t)v->dim[i], place = outer % size, n = room / inner;
        n = n < size - place ? n : size - place;
        add_dimension(&b, n, (uint64_t)v->stride[i], inner);
        b.count *= n;
        b.start += place * (uint64_t)v->stride[i];
        outer /= size;
    }
    for (; i-- > 0; outer /= (uint64_t)v->dim[i])
        b.start += outer % (uint64_t)v->dim[i] * (uint64_t)v->stride[i];
    for (int k = 0; k < b.rank; k++)
        span += (b.dims[k].count - 1) * b.dims[k].from;
    b.dense = span <= 16 * b.count;
    return b;
}

static uint64_t base_of(const struct pm_torch_view *v)
{
    return v->storage->at + v->storage->first * v->storage->type->size;
}

/* Moves the window to the element at `at`; it also covers the following elements if they are
 * needed. */
static int move_window(const struct pm_tensor_file *f, const struct pm_torch_view *v, bool ahead,
                       uint64_t at, struct window *w)
{
    uint64_t end = base_of(v) + v->storage->view * v->storage->type->size;
    uint64_t size = ahead ? WINDOW : v->type->size;

    w->at = at;
    w->size = (size_t)(size < end - at ? size : end - at);
    return pm_tensor_file_read(f, 0, at, w->size, w->bytes);
}

/* Reads along the last dimension, which has the smallest stride; the other indices are fixed. */
static int fill_line(const struct pm_tensor_file *f, const struct pm_torch_view *v,
                     const struct block *b, uint64_t from, uint64_t to, struct window *w,
                     uint8_t *dst)
{
    int err = PM_OK;
    struct dimension d = b->rank ? b->dims[b->rank - 1] : (struct dimension){ .count = 1 };
    size_t size = v->type->size;
    bool ahead = b->dense || (d.from == 1 && d.count > 64);

    for (uint64_t i = 0; i < d.count; i++, from += d.from, to += d.to) {
        uint64_t at = base_of(v) + from * size;
        if (at < w->at || at + size > w->at + w->size)
            PM_TRY(move_window(f, v, ahead, at, w));
        memcpy(dst + to * size, w->bytes + (at - w->at), size);
    }
out:
    return err;
}

static int fill_block(const struct pm_tensor_file *f, const struct pm_torch_view *v,
                      const struct block *b, uint8_t *dst)
{
    int err = PM_OK, lines = b->rank ? b->rank - 1 : 0, i;
    uint64_t at[PM_FILE_MAX_RANK] = { 0 }, from = b->start, to = 0;
    struct window *w = pm_malloc(sizeof *w);

    w->at = w->size = 0;
    do {
        PM_TRY(fill_line(f, v, b, from, to, w, dst));
        for (i = lines; i-- > 0;) {
            from += b->dims[i].from, to += b->dims[i].to;
            if (++at[i] < b->dims[i].count)
                break;
            from -= at[i] * b->dims[i].from, to -= at[i] * b->dims[i].to;
            at[i] = 0;
        }
    } while (i >= 0);
out:
    pm_free(w);
    return err;
}

/* Reads the block that holds `element` and keeps it. */
static int keep_block(const struct pm_tensor_file *f, struct pm_torch_cache *cache,
                      const struct pm_torch_view *v, uint64_t element)
{
    struct block b = choose_block(v, element);
    size_t size = (size_t)b.count * v->type->size;
    int err;

    cache->view = NULL;
    if (size > cache->capacity) {
        pm_free(cache->bytes);
        cache->bytes = pm_malloc(size);
        cache->capacity = size;
    }
    err = fill_block(f, v, &b, cache->bytes);
    if (err == PM_OK) {
        cache->view = v;
        cache->at = b.first * v->type->size;
        cache->size = size;
    }
    return err;
}

int pm_torch_read_strided(const struct pm_tensor_file *f, struct pm_torch_cache *cache,
                          const struct pm_torch_view *v, uint64_t begin, size_t size, void *dst)
{
    int err = PM_OK;

    pthread_mutex_lock(&cache->lock);
    for (size_t done = 0, n; done < size; done += n, begin += n) {
        if (cache->view != v || begin < cache->at || begin >= cache->at + cache->size)
            PM_TRY(keep_block(f, cache, v, begin / v->type->size));
        n = (size_t)(cache->at + cache->size - begin);
        n = n < size - done ? n : size - done;
        memcpy((uint8_t *)dst + done, cache->bytes + (begin - cache->at), n);
    }
out:
    pthread_mutex_unlock(&cache->lock);
    return err;
}
