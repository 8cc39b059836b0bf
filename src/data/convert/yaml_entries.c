/* Reading a small YAML file through the events of libyaml. Aliases are refused, so a file cannot
 * grow while it is read. */
#include "data/convert/yaml_entries.h"

#include <string.h>
#include <yaml.h>

#include "data/library.h"

static struct functions {
    __typeof__(&yaml_parser_initialize) initialize;
    __typeof__(&yaml_parser_delete) release;
    __typeof__(&yaml_parser_set_input_string) input;
    __typeof__(&yaml_parser_parse) parse;
    __typeof__(&yaml_event_delete) drop;
} yaml;

#define ENTRY(member, function) { #function, offsetof(struct functions, member) }
static const struct pm_library_entry entries[] = {
    ENTRY(initialize, yaml_parser_initialize), ENTRY(release, yaml_parser_delete),
    ENTRY(input, yaml_parser_set_input_string), ENTRY(parse, yaml_parser_parse),
    ENTRY(drop, yaml_event_delete),
};

static const char *const names[] = { "libyaml-0.so.2", NULL };
static struct pm_library library = PM_LIBRARY(names, "libyaml-0-2", entries, &yaml);

enum { MOST_LEVELS = 64 };

struct reading {
    const char *path;
    struct pm_arena *arena;
    struct pm_yaml *out;
    size_t depth;               /* open lists and maps */
    bool map[MOST_LEVELS];      /* which kind they are */
    bool at_value[MOST_LEVELS]; /* of a map: its key has been read */
    const char *key, *sub;
    size_t index; /* in the list below the top */
};

static int refuse(const struct reading *r, const yaml_event_t *e, const char *what)
{
    return pm_fail(PM_EDATA, "%s:%zu: %s", r->path, e->start_mark.line + 1, what);
}

/* A value, or a whole list or map, has ended. */
static void end_value(struct reading *r)
{
    if (r->depth > 0)
        r->at_value[r->depth - 1] = false;
    if (r->depth == 2 && !r->map[1])
        r->index++;
}

static int on_scalar(struct reading *r, const yaml_event_t *e)
{
    const char *text = (const char *)e->data.scalar.value;
    char index[24];

    if (r->depth == 0)
        return refuse(r, e, "is not a map; write keys such as train:, val: and names:");
    const size_t level = r->depth - 1;
    if (strlen(text) != e->data.scalar.length)
        return refuse(r, e, "holds a zero byte");
    if (r->map[level] && !r->at_value[level]) {
        r->at_value[level] = true;
        if (level == 0)
            r->key = pm_arena_strdup(r->arena, text);
        else if (level == 1)
            r->sub = pm_arena_strdup(r->arena, text);
        return PM_OK;
    }
    snprintf(index, sizeof index, "%zu", r->index);
    if (level <= 1) {
        PM_GROW(r->out->entry, r->out->count, r->out->capacity);
        r->out->entry[r->out->count++] = (struct pm_yaml_entry){
            r->key, level == 0 ? "" : r->map[1] ? r->sub : pm_arena_strdup(r->arena, index),
            pm_arena_strdup(r->arena, text), (unsigned)e->start_mark.line + 1
        };
    }
    end_value(r);
    return PM_OK;
}

static int open_level(struct reading *r, const yaml_event_t *e, bool map)
{
    if (r->depth == MOST_LEVELS)
        return refuse(r, e, "has more than 64 levels of lists and maps");
    if (r->depth == 0 && !map)
        return refuse(r, e, "begins with a list; write keys such as train:, val: and names:");
    if (r->depth > 0 && r->map[r->depth - 1] && !r->at_value[r->depth - 1])
        return refuse(r, e, "has a list or map as a key");
    r->map[r->depth] = map;
    r->at_value[r->depth++] = false;
    if (r->depth == 2)
        r->index = 0;
    return PM_OK;
}

static int on_event(struct reading *r, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT: return on_scalar(r, e);
    case YAML_SEQUENCE_START_EVENT: return open_level(r, e, false);
    case YAML_MAPPING_START_EVENT: return open_level(r, e, true);
    case YAML_ALIAS_EVENT: return refuse(r, e, "has an alias (*name), which is not supported; "
                                               "write the value");
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        r->depth--;
        end_value(r);
        return PM_OK;
    default: return PM_OK;
    }
}

static int parse(yaml_parser_t *p, struct reading *r)
{
    yaml_event_t e;
    int err = PM_OK;

    for (bool done = false; err == PM_OK && !done;) {
        if (!yaml.parse(p, &e))
            return pm_fail(PM_EDATA, "%s:%zu: not YAML: %s", r->path, p->problem_mark.line + 1,
                           p->problem ? p->problem : "cannot be read");
        done = e.type == YAML_STREAM_END_EVENT || e.type == YAML_DOCUMENT_END_EVENT;
        err = on_event(r, &e);
        yaml.drop(&e);
    }
    return err;
}

int pm_yaml_read(struct pm_arena *a, const char *path, struct pm_yaml *out)
{
    int err = PM_OK;
    char *text = NULL;
    yaml_parser_t p;
    bool made = false;
    struct reading r = { .path = path, .arena = a, .out = out };

    *out = (struct pm_yaml){ .path = path };
    PM_TRY(pm_library_load(&library, "dataset convert yolo"));
    PM_TRY(pm_text_read(path, PM_MOST_YAML, &text));
    if (!yaml.initialize(&p))
        PM_TRY(pm_fail(PM_EMEMORY, "%s: there is not enough memory to read it", path));
    made = true;
    yaml.input(&p, (const unsigned char *)text, strlen(text));
    PM_TRY(parse(&p, &r));
    if (out->count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: is empty; write keys such as train:, val: and names:",
                       path));
out:
    if (made)
        yaml.release(&p);
    pm_free(text);
    return err;
}

void pm_yaml_free(struct pm_yaml *y)
{
    pm_free(y->entry);
    *y = (struct pm_yaml){ 0 };
}

const char *pm_yaml_value(const struct pm_yaml *y, const char *key)
{
    for (size_t i = 0; i < y->count; i++)
        if (!strcmp(y->entry[i].key, key) && !y->entry[i].sub[0])
            return y->entry[i].value;
    return NULL;
}
