/* Values that the pickle machine makes, access to them, and the message for values that torch.save
 * does not write. */
#include "formats/torch/torch.h"

#include <stdarg.h>
#include <string.h>

int pm_torch_pickle_bad(const struct pm_torch_pickle *p, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return pm_fail(PM_EDATA, "%s: its pickle at offset %llu: %s", p->f->path,
                   (unsigned long long)p->opcode, text);
}

struct pm_torch_value *pm_torch_value(struct pm_torch_pickle *p, enum pm_torch_kind kind)
{
    struct pm_torch_value *v = pm_arena_alloc(p->arena, sizeof *v);

    p->value_count++;
    v->kind = kind;
    return v;
}

void pm_torch_append(struct pm_torch_pickle *p, struct pm_torch_value *to,
                     struct pm_torch_value *key, struct pm_torch_value *value)
{
    struct pm_torch_cell *c = pm_arena_alloc(p->arena, sizeof *c);

    p->cell_count++;
    *c = (struct pm_torch_cell){ .key = key, .value = value };
    if (to->last)
        to->last->next = c;
    else
        to->cells = c;
    to->last = c;
    to->length++;
}

struct pm_torch_value *pm_torch_item(const struct pm_torch_value *v, uint32_t i)
{
    if (!v || (v->kind != PM_TORCH_TUPLE && v->kind != PM_TORCH_LIST) || i >= v->length)
        return NULL;
    const struct pm_torch_cell *c = v->cells;
    for (; c && i > 0; i--)
        c = c->next;
    return c ? c->value : NULL;
}

struct pm_torch_value *pm_torch_get(const struct pm_torch_value *dict, const char *key)
{
    if (dict && dict->kind == PM_TORCH_DICT)
        for (const struct pm_torch_cell *c = dict->cells; c; c = c->next)
            if (c->key && c->key->kind == PM_TORCH_STRING && c->key->text &&
                strcmp(c->key->text, key) == 0)
                return c->value;
    return NULL;
}
