/* tf.Example: named lists of bytes, floats or integers, read and written through protobuf-c.
 *
 * The parsed message is allocated in a list of blocks sized from the record. So one example costs
 * two or three allocations. A hostile record can use only a small multiple of its size. */
#include <limits.h>
#include <string.h>

#include <pumice/data.h>

#include "example.pb-c.h"

/* ---- reading ----------------------------------------------------------------------------- */

struct block {
    struct block *next;
    size_t used, size;
    _Alignas(16) char data[];
};

struct pm_example {
    struct block *blocks;
    Pm__Example *message; /* in the blocks */
    char *where;          /* in the blocks */
};

static struct block *add_block(struct pm_example *e, size_t size)
{
    struct block *b = pm_malloc(sizeof *b + size);
    *b = (struct block){ .next = e->blocks, .size = size };
    e->blocks = b;
    return b;
}

static void *take(void *ctx, size_t size)
{
    struct pm_example *e = ctx;
    struct block *b = e->blocks;

    size = (size + 15) & ~(size_t)15;
    if (b->size - b->used < size)
        b = add_block(e, size > 2 * b->size ? size : 2 * b->size);
    void *p = b->data + b->used;
    b->used += size;
    return p;
}

static void keep(void *ctx, void *p)
{
    (void)ctx, (void)p;
}

/* Whether the message is a tf.SequenceExample, which is read like a tf.Example. Its field 1, the
 * context, is a message of the same layout. Its feature_lists are field 2, which an Example does
 * not have. */
static bool is_sequence(const Pm__Example *m)
{
    for (unsigned i = 0; i < m->base.n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *f = &m->base.unknown_fields[i];
        if (f->tag == 2 && f->wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
            return true;
    }
    return false;
}

int pm_example_parse(const void *data, size_t size, const char *where, struct pm_example **out)
{
    struct pm_example *e = pm_calloc(1, sizeof *e);
    ProtobufCAllocator allocator = { .alloc = take, .free = keep, .allocator_data = e };
    const size_t where_size = strlen(where) + 1;

    add_block(e, size + size / 4 + 4096);
    e->where = take(e, where_size);
    memcpy(e->where, where, where_size);
    e->message = pm__example__unpack(&allocator, size, data);
    if (!e->message) {
        const int err = pm_fail(PM_EDATA, "%s: the %zu bytes are not a tf.Example", where, size);
        pm_example_destroy(&e);
        return err;
    }
    if (is_sequence(e->message)) {
        pm_example_destroy(&e);
        return pm_fail(PM_EDATA,
                       "%s: the record is a tf.SequenceExample, a sequence of pictures; a "
                       "tf.Example with one picture is needed",
                       where);
    }
    *out = e;
    return PM_OK;
}

void pm_example_destroy(struct pm_example **e)
{
    if (!*e)
        return;
    for (struct block *b = (*e)->blocks, *next; b; b = next) {
        next = b->next;
        pm_free(b);
    }
    pm_free(*e);
    *e = NULL;
}

static const char *kind_name(int kind)
{
    switch (kind) {
    case PM__FEATURE__KIND_BYTES_LIST:
        return "bytes";
    case PM__FEATURE__KIND_FLOAT_LIST:
        return "floats";
    case PM__FEATURE__KIND_INT64_LIST:
        return "integers";
    default:
        return "nothing";
    }
}

/* Finds a key. The last entry of a key counts, as in every protobuf map. */
static const Pm__Feature *find(const struct pm_example *e, const char *key)
{
    const Pm__Features *f = e->message->features;
    for (size_t i = f ? f->n_feature : 0; i-- > 0;)
        if (!strcmp(f->feature[i]->key, key))
            return f->feature[i]->value;
    return NULL;
}

/* Returns 1 and *out if key holds a list of that kind; 0 if the key is absent or the list is
 * empty. */
static int find_kind(const struct pm_example *e, const char *key, int kind, const Pm__Feature **out)
{
    const Pm__Feature *f = find(e, key);
    if (!f || f->kind_case == PM__FEATURE__KIND__NOT_SET)
        return 0;
    if ((int)f->kind_case != kind)
        return pm_fail(PM_EDATA, "%s: feature %s has the type %s, but the type %s is needed",
                       e->where, key, kind_name(f->kind_case), kind_name(kind));
    *out = f;
    return 1;
}

int pm_example_bytes(const struct pm_example *e, const char *key, const uint8_t **data,
                     size_t *size)
{
    const Pm__Feature *f = NULL;
    const int found = find_kind(e, key, PM__FEATURE__KIND_BYTES_LIST, &f);
    if (found <= 0 || f->bytes_list->n_value == 0)
        return found < 0 ? found : 0;
    *data = f->bytes_list->value[0].data;
    *size = f->bytes_list->value[0].len;
    return 1;
}

int pm_example_ints(const struct pm_example *e, const char *key, const int64_t **v, size_t *count)
{
    const Pm__Feature *f = NULL;
    const int found = find_kind(e, key, PM__FEATURE__KIND_INT64_LIST, &f);
    if (found <= 0)
        return found;
    *v = f->int64_list->value;
    *count = f->int64_list->n_value;
    return 1;
}

int pm_example_int(const struct pm_example *e, const char *key, int64_t *value)
{
    const int64_t *v = NULL;
    size_t count = 0;
    const int found = pm_example_ints(e, key, &v, &count);
    if (found <= 0 || count == 0)
        return found < 0 ? found : 0;
    *value = v[0];
    return 1;
}

int pm_example_floats(const struct pm_example *e, const char *key, const float **v, size_t *count)
{
    const Pm__Feature *f = NULL;
    const int found = find_kind(e, key, PM__FEATURE__KIND_FLOAT_LIST, &f);
    if (found <= 0)
        return found;
    *v = f->float_list->value;
    *count = f->float_list->n_value;
    return 1;
}

size_t pm_example_count(const struct pm_example *e)
{
    return e->message->features ? e->message->features->n_feature : 0;
}

const char *pm_example_key(const struct pm_example *e, size_t i, const char **kind, size_t *values)
{
    const Pm__FeaturesEntry *entry = e->message->features->feature[i];
    const Pm__Feature *f = entry->value;

    *kind = kind_name(f ? (int)f->kind_case : PM__FEATURE__KIND__NOT_SET);
    *values = 0;
    if (f && f->kind_case == PM__FEATURE__KIND_BYTES_LIST)
        *values = f->bytes_list->n_value;
    else if (f && f->kind_case == PM__FEATURE__KIND_FLOAT_LIST)
        *values = f->float_list->n_value;
    else if (f && f->kind_case == PM__FEATURE__KIND_INT64_LIST)
        *values = f->int64_list->n_value;
    return entry->key;
}

int pm_example_bytes_at(const struct pm_example *e, const char *key, size_t i, const uint8_t **data,
                        size_t *size)
{
    const Pm__Feature *f = NULL;
    const int found = find_kind(e, key, PM__FEATURE__KIND_BYTES_LIST, &f);
    if (found <= 0 || i >= f->bytes_list->n_value)
        return found < 0 ? found : 0;
    *data = f->bytes_list->value[i].data;
    *size = f->bytes_list->value[i].len;
    return 1;
}

/* ---- writing ----------------------------------------------------------------------------- */

struct pm_example_builder {
    struct pm_arena *arena;
    Pm__FeaturesEntry **entry; /* owned list of pointers into the arena */
    size_t count, capacity;
};

struct pm_example_builder *pm_example_builder_create(void)
{
    struct pm_example_builder *b = pm_calloc(1, sizeof *b);
    b->arena = pm_arena_create();
    return b;
}

void pm_example_builder_destroy(struct pm_example_builder **b)
{
    if (!*b)
        return;
    pm_arena_destroy(&(*b)->arena);
    pm_free((*b)->entry);
    pm_free(*b);
    *b = NULL;
}

static Pm__Feature *add_feature(struct pm_example_builder *b, const char *key)
{
    Pm__FeaturesEntry *entry = pm_arena_alloc(b->arena, sizeof *entry);
    Pm__Feature *f = pm_arena_alloc(b->arena, sizeof *f);

    pm__features_entry__init(entry);
    pm__feature__init(f);
    entry->key = pm_arena_strdup(b->arena, key);
    entry->value = f;
    PM_GROW(b->entry, b->count, b->capacity);
    b->entry[b->count++] = entry;
    return f;
}

void pm_example_add_bytes(struct pm_example_builder *b, const char *key, const void *data,
                          size_t size)
{
    const Pm__FeaturesEntry *last = b->count ? b->entry[b->count - 1] : NULL;
    Pm__BytesList *list;

    if (last && !strcmp(last->key, key) && last->value->kind_case == PM__FEATURE__KIND_BYTES_LIST) {
        list = last->value->bytes_list;
    } else {
        Pm__Feature *f = add_feature(b, key);
        list = pm_arena_alloc(b->arena, sizeof *list);
        pm__bytes_list__init(list);
        f->kind_case = PM__FEATURE__KIND_BYTES_LIST;
        f->bytes_list = list;
    }
    ProtobufCBinaryData *value = pm_arena_alloc(b->arena, (list->n_value + 1) * sizeof *value);
    if (list->n_value)
        memcpy(value, list->value, list->n_value * sizeof *value);
    value[list->n_value].len = size;
    value[list->n_value].data = size ? pm_arena_copy(b->arena, data, size) : NULL;
    list->value = value;
    list->n_value++;
}

void pm_example_add_ints(struct pm_example_builder *b, const char *key, const int64_t *v,
                         size_t count)
{
    Pm__Feature *f = add_feature(b, key);
    Pm__Int64List *list = pm_arena_alloc(b->arena, sizeof *list);

    pm__int64_list__init(list);
    list->n_value = count;
    list->value = count ? pm_arena_copy(b->arena, v, count * sizeof *v) : NULL;
    f->kind_case = PM__FEATURE__KIND_INT64_LIST;
    f->int64_list = list;
}

void pm_example_add_floats(struct pm_example_builder *b, const char *key, const float *v,
                           size_t count)
{
    Pm__Feature *f = add_feature(b, key);
    Pm__FloatList *list = pm_arena_alloc(b->arena, sizeof *list);

    pm__float_list__init(list);
    list->n_value = count;
    list->value = count ? pm_arena_copy(b->arena, v, count * sizeof *v) : NULL;
    f->kind_case = PM__FEATURE__KIND_FLOAT_LIST;
    f->float_list = list;
}

bool pm_example_builder_int(const struct pm_example_builder *b, const char *key, int64_t *value)
{
    for (size_t i = 0; i < b->count; i++) {
        const Pm__Feature *f = b->entry[i]->value;
        if (strcmp(b->entry[i]->key, key) || f->kind_case != PM__FEATURE__KIND_INT64_LIST ||
            f->int64_list->n_value == 0)
            continue;
        *value = f->int64_list->value[0];
        return true;
    }
    return false;
}

void pm_example_serialise(struct pm_example_builder *b, uint8_t **data, size_t *size)
{
    Pm__Features features = PM__FEATURES__INIT;
    Pm__Example message = PM__EXAMPLE__INIT;

    features.n_feature = b->count;
    features.feature = b->entry;
    message.features = &features;
    *size = pm__example__get_packed_size(&message);
    *data = pm_malloc(*size ? *size : 1);
    pm__example__pack(&message, *data);
}
