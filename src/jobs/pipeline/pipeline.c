/* pipeline: walks the tree of a pipeline config and converts each field as its row says. */
#include "jobs/pipeline/fields.h"

#include <pumice/config.h>
#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys, notes, errors -------------------------------------------------------------------- */

/* Returns the object that has the last part of a key, and that part. make: missing objects are
 * added; else NULL is returned. */
static cJSON *parent_of(cJSON *o, const char *key, bool make, const char **last)
{
    char part[64];

    for (const char *dot = strchr(key, '.'); o && dot; key = dot + 1, dot = strchr(key, '.')) {
        snprintf(part, sizeof part, "%.*s", (int)(dot - key), key);
        cJSON *child = cJSON_GetObjectItemCaseSensitive(o, part);
        o = child || !make ? child : cJSON_AddObjectToObject(o, part);
    }
    *last = key;
    return o;
}

static void put(cJSON *object, const char *name, cJSON *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
    cJSON_AddItemToObject(object, name, value);
}

void pm_pipeline_set(struct pm_pipeline *p, const char *key, cJSON *value)
{
    const char *last;
    cJSON *o = parent_of(p->config, key, true, &last);

    put(o, last, value);
}

cJSON *pm_pipeline_get(const struct pm_pipeline *p, const char *key)
{
    const char *last;
    cJSON *o = parent_of(p->config, key, false, &last);

    return cJSON_GetObjectItemCaseSensitive(o, last);
}

void pm_pipeline_note(struct pm_pipeline *p, const struct pm_proto_text *f, bool lost,
                      const char *fmt, ...)
{
    struct pm_str text = { 0 };
    cJSON *note = cJSON_CreateObject();
    va_list args;

    va_start(args, fmt);
    pm_str_add_args(&text, fmt, args);
    va_end(args);
    cJSON_AddStringToObject(note, "file", p->file);
    cJSON_AddNumberToObject(note, "line", f->line);
    cJSON_AddStringToObject(note, "field", f->name);
    cJSON_AddBoolToObject(note, "differs", lost);
    cJSON_AddStringToObject(note, "why", text.text);
    cJSON_AddItemToArray(p->notes, note);
    pm_str_free(&text);
}

int pm_pipeline_fail(const struct pm_pipeline *p, const struct pm_proto_text *f, const char *fmt,
                     ...)
{
    struct pm_str text = { 0 };
    va_list args;

    va_start(args, fmt);
    pm_str_add_args(&text, fmt, args);
    va_end(args);
    const int err = pm_fail(PM_EDATA, "%s:%u: %s: %s", p->file, f->line, f->name, text.text);
    pm_str_free(&text);
    return err;
}

/* ---- values --------------------------------------------------------------------------------- */

cJSON *pm_pipeline_number(double v)
{
    char text[32];

    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if ((float)strtod(text, NULL) == (float)v)
            break;
    }
    return cJSON_CreateNumber(strtod(text, NULL));
}

/* The names of enum values, here in lower case: RELU_6 is relu6. */
static cJSON *word(const char *text)
{
    char out[64];
    size_t n = 0;

    if (strcmp(text, "RELU_6") == 0)
        return cJSON_CreateString("relu6");
    if (strcmp(text, "NEAREST_NEIGHBOR") == 0)
        return cJSON_CreateString("nearest");
    for (; text[n] && n + 1 < sizeof out; n++)
        out[n] = (char)tolower((unsigned char)text[n]);
    out[n] = '\0';
    return cJSON_CreateString(out);
}

int pm_pipeline_value(const struct pm_pipeline *p, enum pm_pipeline_type type,
                      const struct pm_proto_text *f, cJSON **out)
{
    static const char *const wanted[] = {
        [PM_PIPELINE_INT] = "a whole number",  [PM_PIPELINE_NUMBER] = "a number",
        [PM_PIPELINE_BOOL] = "true or false",  [PM_PIPELINE_TEXT] = "a text in quotes",
        [PM_PIPELINE_WORD] = "a word without quotes",
    };
    int64_t whole = 0;
    double number = 0;
    bool yes = false;
    *out = NULL;

    switch (type) {
    case PM_PIPELINE_INT:
        if (pm_proto_text_int(f, &whole) && whole >= INT32_MIN && whole <= UINT32_MAX)
            *out = cJSON_CreateNumber((double)whole);
        break;
    case PM_PIPELINE_NUMBER:
        if (pm_proto_text_number(f, &number))
            *out = pm_pipeline_number(number);
        break;
    case PM_PIPELINE_BOOL:
        if (pm_proto_text_bool(f, &yes))
            *out = cJSON_CreateBool(yes);
        break;
    case PM_PIPELINE_TEXT:
        if (f->kind == PM_PROTO_TEXT_STRING)
            *out = cJSON_CreateString(f->value);
        break;
    default:
        if (f->kind == PM_PROTO_TEXT_WORD)
            *out = word(f->value);
    }
    if (*out)
        return PM_OK;
    return pm_pipeline_fail(p, f, "%s is needed, found: %.40s", wanted[type],
                            f->kind == PM_PROTO_TEXT_MESSAGE ? "{" : f->value);
}

const struct pm_proto_text *pm_pipeline_find(const struct pm_proto_text *message,
                                             const char *field)
{
    const struct pm_proto_text *found = NULL;

    for (const struct pm_proto_text *f = message->first; f; f = f->next)
        if (strcmp(f->name, field) == 0)
            found = f;
    return found;
}

int pm_pipeline_number_of(const struct pm_pipeline *p, const struct pm_proto_text *message,
                          const char *field, double absent, double *out)
{
    const struct pm_proto_text *f = pm_pipeline_find(message, field);

    *out = absent;
    if (f && !pm_proto_text_number(f, out))
        return pm_pipeline_fail(p, f, "a number is needed");
    return PM_OK;
}

/* ---- fields --------------------------------------------------------------------------------- */

/* Whether a value is the one without effect. */
static bool is_same(const struct pm_pipeline_row *row, const struct pm_proto_text *f)
{
    double a, b;
    bool yes, no;
    const struct pm_proto_text same = { .kind = PM_PROTO_TEXT_WORD, .value = row->same };

    if (!row->same || f->kind != PM_PROTO_TEXT_WORD)
        return false;
    if (row->type == PM_PIPELINE_BOOL)
        return pm_proto_text_bool(f, &yes) && pm_proto_text_bool(&same, &no) && yes == no;
    if (pm_proto_text_number(&same, &a))
        return pm_proto_text_number(f, &b) && (float)a == (float)b;
    return strcmp(f->value, row->same) == 0;
}

static enum pm_pipeline_type element(enum pm_pipeline_type type)
{
    return type == PM_PIPELINE_INTS      ? PM_PIPELINE_INT
           : type == PM_PIPELINE_NUMBERS ? PM_PIPELINE_NUMBER
           : type == PM_PIPELINE_TEXTS   ? PM_PIPELINE_TEXT
                                         : type;
}

/* Sets a member of an object; of a repeated field, appends to the list. */
static int add_value(const struct pm_pipeline *p, const struct pm_pipeline_row *row,
                     const struct pm_proto_text *f, cJSON *object, const char *name)
{
    cJSON *value = NULL;
    int err = PM_OK;

    PM_TRY(pm_pipeline_value(p, element(row->type), f, &value));
    if (element(row->type) == row->type) {
        put(object, name, value);
    } else {
        cJSON *list = cJSON_GetObjectItemCaseSensitive(object, name);
        cJSON_AddItemToArray(list ? list : cJSON_AddArrayToObject(object, name), value);
    }
out:
    return err;
}

static int convert_value(struct pm_pipeline *p, const struct pm_pipeline_row *row,
                         const struct pm_proto_text *f, cJSON *object)
{
    const char *name = row->to ? row->to : f->name;

    if (row->how == PM_PIPELINE_KEY)
        object = parent_of(p->config, name, true, &name);
    return add_value(p, row, f, object, name);
}

/* Returns the member object of this name, which is made if there is none. */
static cJSON *member(cJSON *object, const char *name)
{
    cJSON *o = cJSON_GetObjectItemCaseSensitive(object, name);

    return o ? o : cJSON_AddObjectToObject(object, name);
}

static cJSON *list_item(cJSON *object, const char *name)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(object, name), *item = cJSON_CreateObject();

    cJSON_AddItemToArray(list ? list : cJSON_AddArrayToObject(object, name), item);
    return item;
}

cJSON *pm_pipeline_step(struct pm_pipeline *p, const char *name)
{
    cJSON *step = list_item(member(p->config, "input"), "augment");

    cJSON_AddStringToObject(step, "name", name);
    return step;
}

static int convert_message(struct pm_pipeline *p, const struct pm_pipeline_row *row,
                           const struct pm_proto_text *f, cJSON *object)
{
    const char *name = row->to ? row->to : f->name;

    switch (row->how) {
    case PM_PIPELINE_AT: {
        cJSON *o = parent_of(p->config, name, true, &name);
        object = member(o, name);
        break;
    }
    case PM_PIPELINE_INSIDE: object = member(object, name); break;
    case PM_PIPELINE_ITEM: object = list_item(object, name); break;
    case PM_PIPELINE_TYPE: put(object, "type", cJSON_CreateString(name)); break;
    case PM_PIPELINE_WORD_OF: put(object, "similarity", cJSON_CreateString(name)); break;
    case PM_PIPELINE_STEP:
        object = pm_pipeline_step(p, name);
        break;
    default: break;
    }
    return pm_pipeline_fields(p, row->of, f, object);
}

static int convert(struct pm_pipeline *p, const struct pm_pipeline_row *row,
                   const struct pm_proto_text *f, cJSON *object)
{
    if (row->type == PM_PIPELINE_MESSAGE && f->kind != PM_PROTO_TEXT_MESSAGE)
        return pm_pipeline_fail(p, f, "'{' is needed, found: %.40s", f->value);
    switch (row->how) {
    case PM_PIPELINE_CALL_OF: return row->call(p, row, f, object);
    case PM_PIPELINE_USED: return PM_OK;
    case PM_PIPELINE_NONE:
    case PM_PIPELINE_LOST:
        if (!is_same(row, f))
            pm_pipeline_note(p, f, row->how == PM_PIPELINE_LOST, "%s", row->to);
        return PM_OK;
    case PM_PIPELINE_KEY:
    case PM_PIPELINE_MEMBER: return convert_value(p, row, f, object);
    default: return convert_message(p, row, f, object);
    }
}

/* Fails with the field that is nearest to a name that a message does not have. */
static int unknown(const struct pm_pipeline *p, const char *message, const struct pm_proto_text *f)
{
    const char *names[64];
    size_t count, n = 0;
    const struct pm_pipeline_row *rows = pm_pipeline_rows(&count);

    for (size_t i = 0; i < count && n < PM_COUNT(names); i++)
        if (strcmp(rows[i].message, message) == 0)
            names[n++] = rows[i].field;
    const char *near = pm_nearest(f->name, names, n);
    return pm_pipeline_fail(p, f, "%s has no such field%s%s%s", message,
                            near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

int pm_pipeline_fields(struct pm_pipeline *p, const char *message,
                       const struct pm_proto_text *tree, cJSON *object)
{
    const struct pm_proto_text *outer = p->tree;
    int err = PM_OK;

    p->tree = tree;
    for (const struct pm_proto_text *f = tree->first; f; f = f->next) {
        const struct pm_pipeline_row *row = pm_pipeline_row(message, f->name);

        if (!row)
            PM_TRY(unknown(p, message, f));
        PM_TRY(convert(p, row, f, object));
    }
    size_t i = 0;
    for (const char *name; (name = pm_pipeline_default(message, &i)) != NULL; i++) {
        const struct pm_proto_text f = { .name = name, .line = tree->line,
                                         .kind = PM_PROTO_TEXT_WORD,
                                         .value = pm_pipeline_default_value(i) };

        if (!pm_pipeline_find(tree, name))
            PM_TRY(convert(p, pm_pipeline_row(message, name), &f, object));
    }
out:
    p->tree = outer;
    return err;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Returns the message that a file holds: a whole config, or one of its parts. */
static const char *message_of(const struct pm_proto_text *root)
{
    static const char *const messages[] = { "TrainEvalPipelineConfig", "DetectionModel",
                                            "TrainConfig", "InputReader", "EvalConfig" };

    for (size_t i = 0; i < PM_COUNT(messages); i++)
        if (root->first && pm_pipeline_row(messages[i], root->first->name))
            return messages[i];
    return NULL;
}

/* The order of fields has no meaning in the text form, but the model decides how others are
 * converted. Returns a copy of the root and its fields with the model in front. */
static const struct pm_proto_text *model_first(struct pm_arena *a, const struct pm_proto_text *root)
{
    struct pm_proto_text *out = pm_arena_copy(a, root, sizeof *root), *model = NULL, **to;

    out->first = NULL;
    to = &out->first;
    for (const struct pm_proto_text *f = root->first; f; f = f->next) {
        struct pm_proto_text *copy = pm_arena_copy(a, f, sizeof *f);

        copy->next = NULL;
        if (!model && strcmp(f->name, "model") == 0) {
            model = copy;
            continue;
        }
        *to = copy;
        to = &copy->next;
    }
    if (model) {
        model->next = out->first;
        out->first = model;
    }
    return out;
}

int pm_pipeline_text(struct pm_pipeline *p, const char *name, const char *text)
{
    const struct pm_proto_text *root = NULL;
    struct pm_proto_text_error error;
    int err = PM_OK;

    p->file = name;
    if (pm_proto_text_parse(p->arena, text, true, &root, &error) < 0)
        PM_TRY(pm_fail(PM_EDATA, "%s:%u: %s", name, error.line, error.text));
    const char *message = message_of(root);
    if (!message)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s:%u: %s is not a field of a pipeline config: such a file begins with "
                       "model, train_config, train_input_reader, eval_config or eval_input_reader, "
                       "or is one of these parts",
                       name, root->first ? root->first->line : 1,
                       root->first ? root->first->name : "nothing"));
    PM_TRY(pm_pipeline_fields(p, message, model_first(p->arena, root), p->config));
    PM_TRY(pm_pipeline_settle_queues(p, root->first ? root->first : root));
out:
    return err;
}

static int convert_file(struct pm_pipeline *p, const char *path)
{
    char *text = NULL;
    int err = PM_OK;

    PM_TRY(pm_text_read(path, PM_MOST_TEXT, &text));
    PM_TRY(pm_pipeline_text(p, path, text));
out:
    pm_free(text);
    return err;
}

/* Moves the members of an object into a new one: first those of these names, as far as they exist.
 * Frees the object. */
static cJSON *ordered(cJSON *from, const char *const *names, size_t count)
{
    cJSON *out = cJSON_CreateObject();

    for (size_t i = 0; i < count; i++) {
        cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(from, names[i]);
        if (item)
            cJSON_AddItemToObject(out, names[i], item);
    }
    while (from->child) {
        char *name = pm_strdup(from->child->string);

        cJSON_AddItemToObject(out, name, cJSON_DetachItemViaPointer(from, from->child));
        pm_free(name);
    }
    cJSON_Delete(from);
    return out;
}

/* Sorts the sections as docs/keys.md lists them. */
static cJSON *ordered_sections(cJSON *config)
{
    static const char *const sections[] = { "task",  "model",    "data", "input", "loss",
                                            "optim", "schedule", "init", "run",   "eval" };
    static const char *const model[] = { "name", "num_classes" };
    cJSON *object = cJSON_DetachItemFromObjectCaseSensitive(config, "model");

    if (object)
        cJSON_AddItemToObject(config, "model", ordered(object, model, PM_COUNT(model)));
    return ordered(config, sections, PM_COUNT(sections));
}

int pm_convert_pipeline(const char *const *paths, size_t count, cJSON **config, cJSON **notes)
{
    struct pm_pipeline p = { .arena = pm_arena_create(), .config = cJSON_CreateObject(),
                             .notes = cJSON_CreateArray() };
    int err = PM_OK;

    cJSON_AddStringToObject(p.config, "task", "detection");
    for (size_t i = 0; i < count; i++)
        PM_TRY(convert_file(&p, paths[i]));
    *config = ordered_sections(p.config);
    *notes = p.notes;
    p.config = p.notes = NULL;
out:
    cJSON_Delete(p.config);
    cJSON_Delete(p.notes);
    pm_arena_destroy(&p.arena);
    return err;
}
