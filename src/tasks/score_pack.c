/* score_pack: a pack is
 *
 *     the number `magic`, the size in bytes and the hash of what follows, the line of options, the
 *     task's own contents.
 *
 * `magic` changes with the layout, and also shows another byte order. The hash finds bytes that
 * changed on the way. Readers of the contents still check every length and index. */
#include "tasks/score_pack.h"

#include <string.h>

static const uint64_t magic = 0x3165726f63736d70; /* "pmscore1" as little-endian bytes */

/* ---- the whole pack ---------------------------------------------------------------------- */

size_t pm_score_pack_begin(struct pm_str *out, struct pm_str options)
{
    const size_t begin = out->length;

    for (int i = 0; i < 3; i++)
        pm_pack_int(out, magic); /* pm_score_pack_end sets the second and third */
    pm_pack_text(out, options.text);
    pm_str_free(&options);
    return begin;
}

void pm_score_pack_end(struct pm_str *out, size_t begin)
{
    char *const header = out->text + begin;
    const uint64_t size = out->length - begin - PM_SCORE_PACK_HEADER;
    const uint64_t hash = pm_hash_bytes(header + PM_SCORE_PACK_HEADER, (size_t)size, 0);

    memcpy(header + sizeof size, &size, sizeof size);
    memcpy(header + 2 * sizeof size, &hash, sizeof hash);
}

static int bad_pack(size_t size)
{
    return pm_fail(PM_EDATA,
                   "the scores from another process (%zu bytes) are cut off or damaged: start all "
                   "processes with the same version of Pumice",
                   size);
}

static int check_options(struct pm_unpack *u, size_t size, const char *options)
{
    char *text = pm_unpack_text(u);
    int err = PM_OK;

    if (!text)
        PM_TRY(bad_pack(size));
    if (strcmp(text, options) != 0)
        PM_TRY(pm_fail(PM_EDATA,
                       "the scores from another process are of \"%.200s\", but this process "
                       "evaluates \"%s\": start all processes with the same config and data",
                       text, options));
out:
    pm_free(text);
    return err;
}

int pm_score_unpack_begin(struct pm_unpack *u, const void *bytes, size_t size,
                          struct pm_str options)
{
    int err = PM_OK;

    *u = (struct pm_unpack){ .at = bytes, .left = size };
    const uint64_t first = pm_unpack_int(u), length = pm_unpack_int(u), hash = pm_unpack_int(u);

    if (u->damaged || first != magic || length != u->left ||
        hash != pm_hash_bytes(u->at, u->left, 0))
        PM_TRY(bad_pack(size));
    PM_TRY(check_options(u, size, options.text));
out:
    pm_str_free(&options);
    return err;
}

int pm_score_unpack_end(const struct pm_unpack *u)
{
    if (!u->damaged && u->left == 0)
        return PM_OK;
    return pm_fail(PM_EDATA, "the scores from another process have a value outside of its range, "
                             "or more values than expected: start all processes with the same "
                             "version of Pumice");
}

/* ---- parts of the contents --------------------------------------------------------------- */

void pm_score_sum_add(struct pm_score_sum *s, double term)
{
    PM_GROW(s->term, s->count, s->capacity);
    s->term[s->count++] = term;
    s->value += term;
}

void pm_score_sum_free(struct pm_score_sum *s)
{
    pm_free(s->term);
    *s = (struct pm_score_sum){ 0 };
}

void pm_score_sum_pack(const struct pm_score_sum *s, struct pm_str *out)
{
    pm_pack_int(out, s->count);
    pm_str_bytes(out, s->term, s->count * sizeof *s->term);
}

void pm_score_sum_merge(struct pm_score_sum *s, struct pm_unpack *u)
{
    const size_t count = pm_unpack_count(u, sizeof *s->term);

    for (size_t i = 0; i < count; i++)
        pm_score_sum_add(s, pm_unpack_double(u));
}

void pm_score_counts_pack(const uint64_t *counts, size_t n, struct pm_str *out)
{
    uint64_t used = 0;

    for (size_t i = 0; i < n; i++)
        used += counts[i] != 0;
    pm_pack_int(out, used);
    for (size_t i = 0; i < n; i++)
        if (counts[i]) {
            pm_pack_int(out, i);
            pm_pack_int(out, counts[i]);
        }
}

void pm_score_counts_merge(uint64_t *counts, size_t n, struct pm_unpack *u)
{
    const size_t used = pm_unpack_count(u, 2 * sizeof *counts);

    for (size_t i = 0; i < used && !u->damaged; i++) {
        const uint64_t at = pm_unpack_below(u, n), count = pm_unpack_int(u);

        if (!u->damaged)
            counts[at] += count;
    }
}
