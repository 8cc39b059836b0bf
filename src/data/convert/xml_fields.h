/* xml_fields, internal to data/convert: reads annotation files in XML, in which elements with text
 * lie at fixed paths and one kind of element repeats for each object. libxml2 reads them; it is
 * loaded when it is needed. No tree is built. A file with a document type declaration is refused
 * where the declaration begins: without one there are no entities to expand and no other files to
 * read. */
#ifndef PUMICE_DATA_CONVERT_XML_FIELDS_H
#define PUMICE_DATA_CONVERT_XML_FIELDS_H

#include <pumice/base.h>

enum { PM_XML_LEVELS = 4, PM_MOST_XML_FILE = 16 << 20 /* bytes */ };

struct pm_xml;
/* A kind of file. */
struct pm_xml_form {
    const char *root, *kind;   /* "annotation", "PASCAL VOC" */
    int levels;                /* of its files, for messages */
    const char *const *fields; /* paths below the root, at most PM_XML_LEVELS - 1 names, of elements
                                * with text; a field's number is its place from 1, below 32.
                                * Other elements are ignored */
    int fields_count;
    const char *object; /* path of the elements that repeat; one or two names */
    void (*begin)(struct pm_xml *x); /* of an object */
    /* The text of a field, without spaces around it, for changes in place. */
    void (*value)(struct pm_xml *x, int field, char *text);
    void (*end)(struct pm_xml *x); /* of an object */
};
/* A file while it is read. */
struct pm_xml {
    const struct pm_xml_form *form;
    struct pm_arena *arena;
    const char *path;
    void *out;     /* of the form's functions */
    unsigned seen; /* 1 << field for the fields of the open object */
    const char *element; /* name of the open element */
};
/* Reads a file. command: for the message if libxml2 is missing. PM_EDATA with the line for: an
 * empty file, one that is not well-formed XML, has a DTD or entities of its own, is deeper than 256
 * elements or larger than PM_MOST_XML_FILE; another root; an object with the same field twice; and
 * for what the form refuses. PM_EFAIL if libxml2 is missing. */
int pm_xml_read(const struct pm_xml_form *form, struct pm_arena *a, const char *path,
                const char *command, void *out);
/* For the form's functions: ends the reading with PM_EDATA and the line, unless it has ended. */
void PM_PRINTF(2, 3) pm_xml_refuse(struct pm_xml *x, const char *fmt, ...);
unsigned pm_xml_line(const struct pm_xml *x);
/* Numbers least..1e9; 0 after a refusal. */
void pm_xml_number(struct pm_xml *x, const char *text, double least, double *out);
/* 0, 1, "Unspecified" or an empty text. */
void pm_xml_flag(struct pm_xml *x, const char *text, bool *out);

#endif
