/* proto_text: reads protobuf's text form without a schema, as a tree of fields.
 *
 *     model { ssd { num_classes: 3 } }    # a comment
 *     means: [1.0, 2.0]                   # the same as means: 1.0 means: 2.0
 *
 * Messages stand in { } or < >, with or without ':' before them. Texts in quotes that follow each
 * other are one text. ',' and ';' may follow a field. */
#ifndef PUMICE_FORMATS_PROTO_TEXT_H
#define PUMICE_FORMATS_PROTO_TEXT_H

#include <pumice/base.h>

enum { PM_PROTO_TEXT_DEPTH = 64, PM_PROTO_TEXT_FIELDS = 1 << 22 };

enum pm_proto_text_kind {
    PM_PROTO_TEXT_MESSAGE,
    PM_PROTO_TEXT_STRING, /* in quotes */
    PM_PROTO_TEXT_WORD,   /* a number, true, false, or the name of an enum's value */
};
struct pm_proto_text {
    const char *name;     /* of the field; of the root: "" */
    unsigned line;        /* of its name, from 1 */
    enum pm_proto_text_kind kind;
    const char *value;    /* STRING: without quotes and escapes; WORD: as written */
    struct pm_proto_text *first; /* MESSAGE: its fields in the file's order; NULL: none */
    struct pm_proto_text *next;  /* the next field of the same message */
};
/* A mistake: the line and what is wrong. */
struct pm_proto_text_error {
    unsigned line;
    char text[160];
};
/* Parses a text. The tree is in a. keep_escapes: a backslash before a letter that is no escape
 * stays in the string, as in Python's protobuf (paths of Windows); false: it is a mistake. Returns
 * PM_EDATA and fills *error, without a call of pm_fail, for: a syntax error, a string with a zero
 * byte, more than PM_PROTO_TEXT_DEPTH levels or PM_PROTO_TEXT_FIELDS fields. */
int pm_proto_text_parse(struct pm_arena *a, const char *text, bool keep_escapes,
                        const struct pm_proto_text **out, struct pm_proto_text_error *error);
/* Reads a WORD as a whole number: decimal, 0x or octal. Returns false if it is none, or does not
 * fit into 64 bits. */
bool pm_proto_text_int(const struct pm_proto_text *f, int64_t *out);
/* Reads a WORD as a number: as in C, with an optional f behind it. Returns false if it is none. */
bool pm_proto_text_number(const struct pm_proto_text *f, double *out);
/* Reads a WORD as true or false: true, True, t, 1 and their opposites. */
bool pm_proto_text_bool(const struct pm_proto_text *f, bool *out);

#endif
