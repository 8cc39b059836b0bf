/* Annotation files in XML. libxml2 calls the functions below for each element. */
#include "data/convert/xml_fields.h"

#include <ctype.h>
#include <libxml/parser.h>
#include <libxml/xmlerror.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert/annotated.h"
#include "data/library.h"

/* ---- libxml2 --------------------------------------------------------------------------------- */

static struct functions {
    __typeof__(&xmlCreatePushParserCtxt) create;
    __typeof__(&xmlFreeParserCtxt) release;
    __typeof__(&xmlCtxtUseOptions) options;
    __typeof__(&xmlParseChunk) parse;
    __typeof__(&xmlStopParser) stop;
    __typeof__(&xmlCtxtGetLastError) error;
    int (*line)(void *ctx); /* xmlSAX2GetLineNumber */
} xml;

#define ENTRY(member, function) { #function, offsetof(struct functions, member) }
static const struct pm_library_entry entries[] = {
    ENTRY(create, xmlCreatePushParserCtxt), ENTRY(release, xmlFreeParserCtxt),
    ENTRY(options, xmlCtxtUseOptions),      ENTRY(parse, xmlParseChunk),
    ENTRY(stop, xmlStopParser),             ENTRY(error, xmlCtxtGetLastError),
    ENTRY(line, xmlSAX2GetLineNumber),
};

static const char *const names[] = { "libxml2.so.2", "libxml2.so.16", NULL };
static struct pm_library library = PM_LIBRARY(names, "libxml2", entries, &xml);

/* ---- elements -------------------------------------------------------------------------------- */

enum { NONE, LEVELS = PM_XML_LEVELS, MOST_LEVELS = 256, MOST_NAME = 16, MOST_VALUE = 1024 };

struct reading {
    struct pm_xml x; /* the first member: the form's functions get its address */
    xmlParserCtxtPtr parser;
    int depth;                        /* open elements */
    char open[LEVELS][MOST_NAME + 1]; /* their names, the first LEVELS */
    int object_depth;                 /* of the elements that repeat */
    int field;                        /* of the open element */
    char value[MOST_VALUE + 1];       /* of the field */
    size_t length;
    int err;
};

void pm_xml_refuse(struct pm_xml *x, const char *fmt, ...)
{
    struct reading *r = (struct reading *)x;
    struct pm_str text = { 0 };
    va_list args;

    if (r->err < 0)
        return;
    va_start(args, fmt);
    pm_str_add_args(&text, fmt, args);
    va_end(args);
    r->err = pm_fail(PM_EDATA, "%s:%d: %s", x->path, xml.line(r->parser), text.text);
    pm_str_free(&text);
    xml.stop(r->parser);
}

unsigned pm_xml_line(const struct pm_xml *x)
{
    return (unsigned)xml.line(((const struct reading *)x)->parser);
}

static void on_dtd(void *ctx, const xmlChar *name, const xmlChar *external, const xmlChar *system)
{
    (void)name, (void)external, (void)system;
    pm_xml_refuse(ctx, "has a document type declaration (DTD), which is not read; remove "
                  "<!DOCTYPE ...>");
}

/* Writes the path of the first `depth` open elements, without the root. */
static void path_of(const struct reading *r, int depth, char path[LEVELS * (MOST_NAME + 2)])
{
    size_t n = 0;

    path[0] = '\0';
    for (int i = 1; i < depth; i++)
        n += (size_t)snprintf(path + n, LEVELS * (MOST_NAME + 2) - n, "%s%s", i > 1 ? "/" : "",
                              r->open[i]);
}

/* The field at r->depth levels, or NONE. */
static int field_here(const struct reading *r)
{
    const struct pm_xml_form *form = r->x.form;
    char path[LEVELS * (MOST_NAME + 2)];

    path_of(r, r->depth, path);
    for (int i = 0; i < form->fields_count; i++)
        if (!strcmp(path, form->fields[i]))
            return i + 1;
    return NONE;
}

static bool in_object(const struct reading *r)
{
    char path[LEVELS * (MOST_NAME + 2)];

    if (r->depth < r->object_depth)
        return false;
    path_of(r, r->object_depth, path);
    return !strcmp(path, r->x.form->object);
}

static void on_open(void *ctx, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri,
                    int namespaces, const xmlChar **namespace_list, int attributes, int defaulted,
                    const xmlChar **attribute_list)
{
    struct reading *r = ctx;
    const struct pm_xml_form *form = r->x.form;

    (void)prefix, (void)uri, (void)namespaces, (void)namespace_list, (void)attributes;
    (void)defaulted, (void)attribute_list;
    if (r->field != NONE) {
        pm_xml_refuse(ctx, "<%s> contains an element <%.40s>; it must contain text only",
                      r->open[r->depth - 1], (const char *)name);
        return;
    }
    if (r->depth == MOST_LEVELS) {
        pm_xml_refuse(ctx, "has elements inside of each other %d deep; a file of %s has %d levels",
                      MOST_LEVELS + 1, form->kind, form->levels);
        return;
    }
    if (r->depth < LEVELS)
        snprintf(r->open[r->depth], sizeof r->open[0], "%.*s", MOST_NAME, (const char *)name);
    if (r->depth++ == 0 && strcmp((const char *)name, form->root)) {
        pm_xml_refuse(ctx, "begins with <%.40s>, not with <%s>: it is not a file of %s",
                      (const char *)name, form->root, form->kind);
        return;
    }
    r->length = 0;
    r->field = r->depth <= LEVELS ? field_here(r) : NONE;
    if (r->depth == r->object_depth && in_object(r)) {
        r->x.seen = 0;
        form->begin(&r->x);
    }
}

static void on_text(void *ctx, const xmlChar *text, int length)
{
    struct reading *r = ctx;

    if (r->field == NONE)
        return;
    if (r->length + (size_t)length > MOST_VALUE) {
        pm_xml_refuse(ctx, "<%s> has more than %d bytes", r->open[r->depth - 1], MOST_VALUE);
        return;
    }
    memcpy(r->value + r->length, text, (size_t)length);
    r->length += (size_t)length;
}

/* The text without spaces around it. */
static char *trimmed(struct reading *r)
{
    char *begin = r->value;

    r->value[r->length] = '\0';
    while (r->length && isspace((unsigned char)r->value[r->length - 1]))
        r->value[--r->length] = '\0';
    while (isspace((unsigned char)*begin))
        begin++;
    return begin;
}

void pm_xml_number(struct pm_xml *x, const char *text, double least, double *out)
{
    if (pm_number_in_text(text, out) && *out >= least && *out <= 1e9)
        return;
    *out = 0;
    pm_xml_refuse(x, "<%s> is \"%.40s\"; write a number %s", x->element, text,
                  least == 0 ? "of 0 or more" : "of pixels");
}

void pm_xml_flag(struct pm_xml *x, const char *text, bool *out)
{
    *out = !strcmp(text, "1");
    if (!*out && text[0] && strcmp(text, "0") && strcmp(text, "Unspecified"))
        pm_xml_refuse(x, "<%s> is \"%.40s\"; write 0 or 1", x->element, text);
}

static void take_value(struct reading *r)
{
    char *text = trimmed(r);

    r->x.element = r->open[r->depth - 1];
    if (in_object(r) && r->x.seen & 1u << r->field) {
        pm_xml_refuse(&r->x, "the object has two <%s>", r->x.element);
        return;
    }
    r->x.seen |= 1u << r->field;
    r->x.form->value(&r->x, r->field, text);
}

static void on_close(void *ctx, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
    struct reading *r = ctx;

    (void)name, (void)prefix, (void)uri;
    if (r->err < 0)
        return;
    if (r->field != NONE)
        take_value(r);
    else if (r->depth == r->object_depth && in_object(r))
        r->x.form->end(&r->x);
    r->field = NONE;
    r->depth--;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The parser's own message, which ends with a newline. */
static int parser_error(const struct reading *r)
{
    const xmlError *e = xml.error(r->parser);
    const char *text = e && e->message ? e->message : "is not XML";

    return pm_fail(PM_EDATA, "%s:%d: not well-formed XML: %.*s; correct the file", r->x.path,
                   e ? e->line : 1, (int)strcspn(text, "\n"), text);
}

static int parse(struct reading *r, const char *text, size_t size)
{
    xmlSAXHandler handlers = {
        .internalSubset = on_dtd, .characters = on_text, .cdataBlock = on_text,
        .startElementNs = on_open, .endElementNs = on_close, .initialized = XML_SAX2_MAGIC,
    };

    r->parser = xml.create(&handlers, r, NULL, 0, r->x.path);
    if (!r->parser)
        return pm_fail(PM_EMEMORY, "%s: there is not enough memory to read it", r->x.path);
    xml.options(r->parser, XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    const int code = xml.parse(r->parser, text, (int)size, 1);
    if (r->err == PM_OK && code != XML_ERR_OK)
        r->err = parser_error(r);
    xml.release(r->parser);
    return r->err;
}

int pm_xml_read(const struct pm_xml_form *form, struct pm_arena *a, const char *path,
                const char *command, void *out)
{
    int err = PM_OK;
    char *text = NULL;
    struct reading *r = pm_calloc(1, sizeof *r);

    r->x = (struct pm_xml){ .form = form, .arena = a, .path = path, .out = out };
    r->object_depth = strchr(form->object, '/') ? 3 : 2;
    PM_TRY(pm_library_load(&library, command));
    PM_TRY(pm_text_read(path, PM_MOST_XML_FILE, &text));
    if (!text[0])
        PM_TRY(pm_fail(PM_EDATA, "%s: is empty; a picture without objects has a file with "
                       "<%s></%s>", path, form->root, form->root));
    PM_TRY(parse(r, text, strlen(text)));
out:
    pm_free(text);
    pm_free(r);
    return err;
}
