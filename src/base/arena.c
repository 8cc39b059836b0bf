/* Arena: a chain of blocks, each filled from its start; freed as a whole. Blocks double in size up
 * to 1 MiB, so small arenas stay small and large ones need few allocations. */
#include <pumice/base.h>

#include <string.h>

enum { ALIGN = 16, FIRST_BLOCK = 4096, LARGEST_STEP = 1 << 20 };

struct block {
    struct block *next;
    size_t used, size; /* bytes of data */
    _Alignas(ALIGN) uint8_t data[];
};

struct pm_arena {
    struct block *blocks; /* owned; the newest first, which is being filled */
    size_t next_size;
};

struct pm_arena *pm_arena_create(void)
{
    struct pm_arena *a = pm_calloc(1, sizeof *a);

    a->next_size = FIRST_BLOCK;
    return a;
}

void pm_arena_destroy(struct pm_arena **a)
{
    if (!a || !*a)
        return;
    for (struct block *b = (*a)->blocks, *next; b; b = next) {
        next = b->next;
        pm_free(b);
    }
    pm_free(*a);
    *a = NULL;
}

static struct block *add_block(struct pm_arena *a, size_t size)
{
    size_t data = size > a->next_size ? size : a->next_size;
    struct block *b = pm_calloc(1, sizeof *b + data);

    b->size = data;
    b->next = a->blocks;
    a->blocks = b;
    if (a->next_size < LARGEST_STEP)
        a->next_size *= 2;
    return b;
}

void *pm_arena_alloc(struct pm_arena *a, size_t size)
{
    size_t rounded = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    struct block *b = a->blocks;

    if (rounded < size) /* the sum would wrap: the allocator refuses the true size */
        rounded = size;
    if (!b || b->size - b->used < rounded)
        b = add_block(a, rounded);
    void *p = b->data + b->used;
    b->used += rounded;
    return p;
}

void *pm_arena_copy(struct pm_arena *a, const void *src, size_t size)
{
    void *p = pm_arena_alloc(a, size);

    return size ? memcpy(p, src, size) : p;
}

char *pm_arena_strdup(struct pm_arena *a, const char *s)
{
    return pm_arena_copy(a, s, strlen(s) + 1);
}

char *pm_arena_printf(struct pm_arena *a, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int length = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = pm_arena_alloc(a, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, fmt, again);
    va_end(again);
    return text;
}
