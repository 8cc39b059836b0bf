/* Reads flags from usage and help texts. These write every flag as --name, and a value in capitals
 * after a flag that takes one. */
#include "app/usage.h"

#include <ctype.h>
#include <string.h>

enum { MOST_FLAGS = 32, MOST_PARTS = 16 };

static const char lower[] = "abcdefghijklmnopqrstuvwxyz-";
static const char upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ|.";

/* Whether a flag is a placeholder for others, or belongs to main. */
static bool is_special(const char *name)
{
    return strcmp(name, "--key") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "--json") == 0;
}

/* Returns the value after a flag: a word in capitals, "FOLDER", "N". "S of" is a value; "It" begins
 * a sentence. */
static const char *value_after(const char *text, struct pm_arena *a)
{
    if (*text != ' ')
        return NULL;
    text++;
    const size_t n = strspn(text, upper);
    const char end = text[n];

    if (!isupper((unsigned char)*text) || isalnum((unsigned char)end) || end == '=')
        return NULL;
    return pm_arena_printf(a, "%.*s", (int)n, text);
}

static void add_flags(const char *text, struct pm_arena *a, struct app_flag *flags, size_t *count)
{
    while (text && (text = strstr(text, "--"))) {
        const size_t n = 2 + strspn(text + 2, lower);
        const char *name = pm_arena_printf(a, "%.*s", (int)n, text);
        size_t i = 0;

        text += n;
        while (i < *count && strcmp(flags[i].name, name) != 0)
            i++;
        if (n == 2 || is_special(name) || (i == *count && i == MOST_FLAGS))
            continue;
        const char *value = value_after(text, a);
        if (i == *count)
            flags[(*count)++] = (struct app_flag){ name, value };
        else if (!flags[i].value)
            flags[i].value = value;
    }
}

static void add_parts(const char *usage, struct pm_arena *a, const char **parts, size_t *count)
{
    for (const char *line = usage; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t n = strspn(line, lower);
        if (n == 0 || line[0] == '-' || line[n] != ' ' || *count == MOST_PARTS)
            continue;
        const char *name = pm_arena_printf(a, "%.*s", (int)n, line);
        bool known = false;
        for (size_t i = 0; i < *count; i++)
            known |= strcmp(parts[i], name) == 0;
        if (!known)
            parts[(*count)++] = name;
    }
}

struct app_usage app_usage_read(const struct pm_command *c, struct pm_arena *a)
{
    struct app_flag flags[MOST_FLAGS];
    const char *parts[MOST_PARTS];
    size_t flags_count = 0, parts_count = 0;

    add_flags(c->usage, a, flags, &flags_count);
    add_flags(c->details, a, flags, &flags_count);
    add_parts(c->usage, a, parts, &parts_count);
    return (struct app_usage){
        .flags = pm_arena_copy(a, flags, flags_count * sizeof *flags),
        .flags_count = flags_count,
        .parts = pm_arena_copy(a, parts, parts_count * sizeof *parts),
        .parts_count = parts_count,
        .config = !strstr(c->usage, "CONFIG.json") ? 0 : parts_count && c->usage[0] != 'C' ? 2 : 1,
    };
}
