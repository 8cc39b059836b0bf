/* Growing texts, nearest names, hashes, sizes in readable units, the clock. */
#include <pumice/base.h>

#include <ctype.h>
#include <string.h>
#include <time.h>

static void reserve(struct pm_str *s, size_t more)
{
    size_t need = s->length + more + 1;

    if (need <= s->capacity)
        return;
    s->capacity = need > 2 * s->capacity ? need : 2 * s->capacity;
    s->text = pm_realloc(s->text, s->capacity);
}

void pm_str_add_args(struct pm_str *s, const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    int length = vsnprintf(NULL, 0, fmt, ap);
    reserve(s, (size_t)length);
    vsnprintf(s->text + s->length, (size_t)length + 1, fmt, again);
    va_end(again);
    s->length += (size_t)length;
}

void pm_str_add(struct pm_str *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    pm_str_add_args(s, fmt, ap);
    va_end(ap);
}

void pm_str_bytes(struct pm_str *s, const void *bytes, size_t count)
{
    reserve(s, count);
    if (count)
        memcpy(s->text + s->length, bytes, count);
    s->length += count;
    s->text[s->length] = '\0';
}

void pm_str_base64(struct pm_str *s, const void *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *b = bytes;

    reserve(s, (count + 2) / 3 * 4);
    for (size_t i = 0; i < count; i += 3) {
        const uint32_t v = (uint32_t)b[i] << 16 | (i + 1 < count ? (uint32_t)b[i + 1] << 8 : 0) |
                           (i + 2 < count ? b[i + 2] : 0);
        char *out = s->text + s->length;

        out[0] = digits[v >> 18];
        out[1] = digits[v >> 12 & 63];
        out[2] = i + 1 < count ? digits[v >> 6 & 63] : '=';
        out[3] = i + 2 < count ? digits[v & 63] : '=';
        s->length += 4;
    }
    s->text[s->length] = '\0';
}

void pm_str_free(struct pm_str *s)
{
    pm_free(s->text);
    *s = (struct pm_str){ 0 };
}

/* Returns the edit distance with swaps of neighbours (optimal string alignment), ignoring case.
 * Names longer than the rows are compared by their beginnings. */
static int distance(const char *a, const char *b)
{
    enum { LONGEST = 96 };
    int rows[3][LONGEST + 1];
    int na = (int)strnlen(a, LONGEST), nb = (int)strnlen(b, LONGEST);

    for (int j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (int i = 1; i <= na; i++) {
        int *cur = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
        int ca = tolower((unsigned char)a[i - 1]);
        cur[0] = i;
        for (int j = 1; j <= nb; j++) {
            int cb = tolower((unsigned char)b[j - 1]);
            int best = up[j - 1] + (ca != cb);
            if (up[j] + 1 < best)
                best = up[j] + 1;
            if (cur[j - 1] + 1 < best)
                best = cur[j - 1] + 1;
            if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
                cb == tolower((unsigned char)a[i - 2]) && up2[j - 2] + 1 < best)
                best = up2[j - 2] + 1;
            cur[j] = best;
        }
    }
    return rows[na % 3][nb];
}

const char *pm_nearest(const char *name, const char *const *names, size_t count)
{
    const char *nearest = NULL;
    int best = 0;

    for (size_t i = 0; i < count; i++) {
        int d = distance(name, names[i]);
        if (!nearest || d < best) {
            nearest = names[i];
            best = d;
        }
    }
    return nearest && 2 * (size_t)best < strlen(name) ? nearest : NULL;
}

uint64_t pm_hash_bytes(const void *bytes, size_t count, uint64_t seed)
{
    const uint8_t *b = bytes;
    uint64_t h = seed;

    for (size_t i = 0; i < count; i++)
        h = (h ^ b[i]) * UINT64_C(0x100000001b3);
    return h;
}

uint64_t pm_hash(const char *s)
{
    return pm_hash_bytes(s, strlen(s), UINT64_C(0xcbf29ce484222325));
}

char *pm_bytes_text(uint64_t bytes, char buf[24])
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1023.95 && unit + 1 < PM_COUNT(units)) {
        value /= 1024;
        unit++;
    }
    bool whole = unit == 0 || value == (double)(uint64_t)value;
    snprintf(buf, 24, whole ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return buf;
}

double pm_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *pm_plural(double count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

bool pm_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

void pm_str_duration(struct pm_str *s, double seconds)
{
    const long long whole = (long long)(seconds + 0.5);

    if (seconds < 1)
        pm_str_add(s, "%.3g ms", 1e3 * seconds);
    else if (seconds < 60)
        pm_str_add(s, "%.3g s", seconds);
    else if (whole < 3600)
        pm_str_add(s, "%lld min %lld s", whole / 60, whole % 60);
    else if (whole < 86400)
        pm_str_add(s, "%lld h %lld min", whole / 3600, whole % 3600 / 60);
    else
        pm_str_add(s, "%lld d %lld h", whole / 86400, whole % 86400 / 3600);
}
