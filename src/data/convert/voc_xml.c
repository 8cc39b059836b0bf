/* Annotation files of PASCAL VOC:
 *     <annotation> <filename>F</filename> <size> <width>W</width> <height>H</height> </size>
 *         <object> <name>N</name> <pose>P</pose> <truncated>0</truncated> <difficult>0</difficult>
 *             <bndbox> <xmin>..</xmin> <ymin>..</ymin> <xmax>..</xmax> <ymax>..</ymax> </bndbox>
 *         </object> </annotation>
 * libxml2 calls the functions below for each element, so no tree is built. A file with a document
 * type declaration is refused where the declaration begins: without one there are no entities to
 * expand and no other files to read. */
#include "data/convert/voc_xml.h"

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

enum field {
    NONE, FILENAME, WIDTH, HEIGHT, NAME, POSE, TRUNCATED, DIFFICULT, YMIN, XMIN, YMAX, XMAX,
};
static const struct {
    const char *path; /* below annotation */
    enum field field;
} fields[] = {
    { "filename", FILENAME },
    { "size/width", WIDTH },
    { "size/height", HEIGHT },
    { "object/name", NAME },
    { "object/pose", POSE },
    { "object/truncated", TRUNCATED },
    { "object/difficult", DIFFICULT },
    { "object/bndbox/ymin", YMIN },
    { "object/bndbox/xmin", XMIN },
    { "object/bndbox/ymax", YMAX },
    { "object/bndbox/xmax", XMAX },
};
enum { LEVELS = 4, MOST_LEVELS = 256, MOST_NAME = 16, MOST_VALUE = 1024 };
enum { BOX = 1 << YMIN | 1 << XMIN | 1 << YMAX | 1 << XMAX };

struct reading {
    xmlParserCtxtPtr parser;
    struct pm_arena *arena;
    const char *path;
    struct pm_voc_file *out;
    int depth;                        /* open elements */
    char open[LEVELS][MOST_NAME + 1]; /* their names, the first LEVELS */
    enum field field;                 /* of the open element */
    unsigned seen;                    /* 1 << field, of the open object */
    char value[MOST_VALUE + 1];       /* of the field */
    size_t length;
    int err;
};

/* Ends the reading with a message, unless there is one already. */
static void PM_PRINTF(2, 3) refuse(struct reading *r, const char *fmt, ...)
{
    struct pm_str text = { 0 };
    va_list args;

    if (r->err < 0)
        return;
    va_start(args, fmt);
    pm_str_add_args(&text, fmt, args);
    va_end(args);
    r->err = pm_fail(PM_EDATA, "%s:%d: %s", r->path, xml.line(r->parser), text.text);
    pm_str_free(&text);
    xml.stop(r->parser);
}

static void on_dtd(void *ctx, const xmlChar *name, const xmlChar *external, const xmlChar *system)
{
    (void)name, (void)external, (void)system;
    refuse(ctx, "has a document type declaration (DTD), which is not read; remove <!DOCTYPE ...>");
}

/* The field at r->depth levels, or NONE. */
static enum field field_here(const struct reading *r)
{
    char path[LEVELS * (MOST_NAME + 2)];
    size_t n = 0;

    path[0] = '\0';
    for (int i = 1; i < r->depth; i++)
        n += (size_t)snprintf(path + n, sizeof path - n, "%s%s", i > 1 ? "/" : "", r->open[i]);
    for (size_t i = 0; i < PM_COUNT(fields); i++)
        if (!strcmp(path, fields[i].path))
            return fields[i].field;
    return NONE;
}

static bool in_object(const struct reading *r)
{
    return r->depth >= 2 && !strcmp(r->open[1], "object");
}

static void on_open(void *ctx, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri,
                    int namespaces, const xmlChar **namespace_list, int attributes, int defaulted,
                    const xmlChar **attribute_list)
{
    struct reading *r = ctx;

    (void)prefix, (void)uri, (void)namespaces, (void)namespace_list, (void)attributes;
    (void)defaulted, (void)attribute_list;
    if (r->field != NONE) {
        refuse(r, "<%s> contains an element <%.40s>; it must contain text only",
               r->open[r->depth - 1],
               (const char *)name);
        return;
    }
    if (r->depth == MOST_LEVELS) {
        refuse(r, "has elements inside of each other %d deep; a file of PASCAL VOC has 5 levels",
               MOST_LEVELS + 1);
        return;
    }
    if (r->depth < LEVELS)
        snprintf(r->open[r->depth], sizeof r->open[0], "%.*s", MOST_NAME, (const char *)name);
    if (r->depth++ == 0 && strcmp((const char *)name, "annotation")) {
        refuse(r, "begins with <%.40s>, not with <annotation>: it is not a file of PASCAL VOC",
               (const char *)name);
        return;
    }
    r->length = 0;
    r->field = r->depth <= LEVELS ? field_here(r) : NONE;
    if (r->depth == 2 && in_object(r)) {
        r->seen = 0;
        PM_GROW(r->out->object, r->out->count, r->out->capacity);
        r->out->object[r->out->count++] =
            (struct pm_voc_object){ .line = (unsigned)xml.line(r->parser) };
    }
}

static void on_text(void *ctx, const xmlChar *text, int length)
{
    struct reading *r = ctx;

    if (r->field == NONE)
        return;
    if (r->length + (size_t)length > MOST_VALUE) {
        refuse(r, "<%s> has more than %d bytes", r->open[r->depth - 1], MOST_VALUE);
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

static void take_number(struct reading *r, const char *text, double least, double *out)
{
    if (pm_number_in_text(text, out) && *out >= least && *out <= 1e9)
        return;
    *out = 0;
    refuse(r, "<%s> is \"%.40s\"; write a number %s", r->open[r->depth - 1], text,
           least == 0 ? "of 0 or more" : "of pixels");
}

static void take_flag(struct reading *r, const char *text, bool *out)
{
    *out = !strcmp(text, "1");
    if (!*out && text[0] && strcmp(text, "0") && strcmp(text, "Unspecified"))
        refuse(r, "<%s> is \"%.40s\"; write 0 or 1", r->open[r->depth - 1], text);
}

static void take_value(struct reading *r)
{
    struct pm_voc_object *o = r->out->count ? &r->out->object[r->out->count - 1] : NULL;
    const char *text = trimmed(r);
    double number = 0;

    if (in_object(r) && r->seen & 1u << r->field) {
        refuse(r, "the object has two <%s>", r->open[r->depth - 1]);
        return;
    }
    r->seen |= 1u << r->field;
    switch (r->field) {
    case FILENAME: r->out->filename = pm_arena_strdup(r->arena, text); break;
    case WIDTH: take_number(r, text, 0, &number), r->out->width = (int)number; break;
    case HEIGHT: take_number(r, text, 0, &number), r->out->height = (int)number; break;
    case NAME: o->name = pm_arena_strdup(r->arena, text); break;
    case POSE: o->pose = text[0] ? pm_arena_strdup(r->arena, text) : NULL; break;
    case TRUNCATED: take_flag(r, text, &o->truncated); break;
    case DIFFICULT: take_flag(r, text, &o->difficult); break;
    default: take_number(r, text, -1e9, &o->box[r->field - YMIN]); break;
    }
}

static void end_object(struct reading *r)
{
    const struct pm_voc_object *o = &r->out->object[r->out->count - 1];

    if (!o->name || !o->name[0])
        refuse(r, "the object that begins in line %u has no <name>", o->line);
    for (enum field f = YMIN; f <= XMAX; f++)
        if (!(r->seen & 1u << f))
            refuse(r, "the object that begins in line %u has no <bndbox> with <%s>; rotated boxes "
                   "are not supported", o->line, strrchr(fields[f - 1].path, '/') + 1);
}

static void on_close(void *ctx, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
    struct reading *r = ctx;

    (void)name, (void)prefix, (void)uri;
    if (r->err < 0)
        return;
    if (r->field != NONE)
        take_value(r);
    else if (r->depth == 2 && in_object(r))
        end_object(r);
    r->field = NONE;
    r->depth--;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The parser's own message, which ends with a newline. */
static int parser_error(const struct reading *r)
{
    const xmlError *e = xml.error(r->parser);
    const char *text = e && e->message ? e->message : "is not XML";

    return pm_fail(PM_EDATA, "%s:%d: not well-formed XML: %.*s; correct the file", r->path,
                   e ? e->line : 1, (int)strcspn(text, "\n"), text);
}

static int parse(struct reading *r, const char *text, size_t size)
{
    xmlSAXHandler handlers = {
        .internalSubset = on_dtd, .characters = on_text, .cdataBlock = on_text,
        .startElementNs = on_open, .endElementNs = on_close, .initialized = XML_SAX2_MAGIC,
    };

    r->parser = xml.create(&handlers, r, NULL, 0, r->path);
    if (!r->parser)
        return pm_fail(PM_EMEMORY, "%s: there is not enough memory to read it", r->path);
    xml.options(r->parser, XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    const int code = xml.parse(r->parser, text, (int)size, 1);
    if (r->err == PM_OK && code != XML_ERR_OK)
        r->err = parser_error(r);
    xml.release(r->parser);
    return r->err;
}

int pm_voc_read(struct pm_arena *a, const char *path, struct pm_voc_file *out)
{
    int err = PM_OK;
    char *text = NULL;
    struct reading *r = pm_calloc(1, sizeof *r);

    *out = (struct pm_voc_file){ 0 };
    r->arena = a;
    r->path = path;
    r->out = out;
    PM_TRY(pm_library_load(&library, "dataset convert voc"));
    PM_TRY(pm_text_read(path, PM_MOST_VOC_FILE, &text));
    if (!text[0])
        PM_TRY(pm_fail(PM_EDATA, "%s: is empty; a picture without objects has a file with "
                       "<annotation></annotation>", path));
    PM_TRY(parse(r, text, strlen(text)));
out:
    pm_free(text);
    pm_free(r);
    return err;
}

void pm_voc_free(struct pm_voc_file *f)
{
    pm_free(f->object);
    *f = (struct pm_voc_file){ 0 };
}
