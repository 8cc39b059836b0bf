/* pack: see pack.h. A text is its length plus 1, or 0 for NULL, and then its bytes. */
#include "base/pack.h"

#include <string.h>

void pm_pack_int(struct pm_str *out, uint64_t v)
{
    pm_str_bytes(out, &v, sizeof v);
}

void pm_pack_double(struct pm_str *out, double v)
{
    pm_str_bytes(out, &v, sizeof v);
}

void pm_pack_text(struct pm_str *out, const char *text)
{
    const size_t length = text ? strlen(text) : 0;

    pm_pack_int(out, text ? length + 1 : 0);
    pm_str_bytes(out, text, length);
}

/* Gives up: later reads find no bytes. */
static void give_up(struct pm_unpack *u)
{
    u->damaged = true;
    u->left = 0;
}

const void *pm_unpack_bytes(struct pm_unpack *u, size_t size)
{
    const uint8_t *at = u->at;

    if (u->damaged || size > u->left) {
        give_up(u);
        return NULL;
    }
    u->at += size;
    u->left -= size;
    return at;
}

uint64_t pm_unpack_int(struct pm_unpack *u)
{
    uint64_t v = 0;
    const void *bytes = pm_unpack_bytes(u, sizeof v);

    if (bytes)
        memcpy(&v, bytes, sizeof v);
    return v;
}

double pm_unpack_double(struct pm_unpack *u)
{
    const uint64_t bits = pm_unpack_int(u);
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

uint64_t pm_unpack_below(struct pm_unpack *u, uint64_t limit)
{
    const uint64_t v = pm_unpack_int(u);

    if (v < limit)
        return v;
    give_up(u);
    return 0;
}

size_t pm_unpack_count(struct pm_unpack *u, size_t least)
{
    const uint64_t count = pm_unpack_int(u);

    if (count <= u->left / least)
        return (size_t)count;
    give_up(u);
    return 0;
}

char *pm_unpack_text(struct pm_unpack *u)
{
    const uint64_t more = pm_unpack_int(u);
    const void *bytes;
    struct pm_str text = { 0 };

    if (more == 0)
        return NULL;
    if (more - 1 > u->left || memchr(u->at, 0, (size_t)more - 1)) {
        give_up(u);
        return NULL;
    }
    bytes = pm_unpack_bytes(u, (size_t)more - 1);
    pm_str_bytes(&text, bytes, (size_t)more - 1);
    return text.text;
}
