/* result: the counts of an evaluation, which the parts of its section show. */
#ifndef PM_RESULT_H
#define PM_RESULT_H

#include "report/page.h"

struct cell {
    int truth, predicted;
    double count;
};
struct result;
/* The kind of counts (pictures or pixels) and its words. */
struct kind {
    const char *of;             /* evaluation.json's; NULL: it does not say */
    const char *unit;           /* "pictures" */
    const char *samples, *list; /* the pictures' note, and the class of their list */
    const char *classes;        /* the classes' note */
    const char *score;          /* by which they are ordered; the bar */
    void (*write_sample)(struct pm_str *html, const struct result *r, const cJSON *sample);
    bool background;            /* the matrix has one more class: nothing */
    /* Writes cards before the matrix; NULL: none. json: the charts' objects. */
    void (*write_cards)(struct pm_str *html, struct pm_str *json, const struct result *r);
    /* Writes the card of the classes; NULL: the table of precision, recall and score. */
    void (*write_classes)(struct pm_str *html, const struct result *r);
};
struct result {
    const cJSON *evaluation;  /* borrowed */
    const struct kind *kind;
    int index;                /* of the evaluation on the page: from 0 */
    char **names;             /* [classes], owned */
    double *count, *right;    /* [classes]: pictures of the class; those predicted as it */
    double *predicted;        /* [classes]: pictures predicted as the class; NAN: unknown */
    int classes;              /* with the background, which is the last one */
    struct cell *cells;       /* largest count first */
    int cells_count;
};

/* result.c: reads the counts. Members that are missing or have a wrong type are ignored. */
void pm_result_read(struct result *r, const cJSON *evaluation, const struct kind *kind, int index);
void pm_result_free(struct result *r);
/* NAN: of none, or of an unknown number. */
double pm_result_share(double part, double whole);
/* Copies [classes] numbers of a list of a JSON object; NAN where there is none. Free it with
 * pm_free. per_class: may be NULL. */
double *pm_result_list(const struct result *r, const cJSON *per_class, const char *name);
/* page_evaluation.c: begins the table of a card with a row for each class, and the head of its
 * first column. Many classes get a box that filters the rows. classes: number of rows. id: unique
 * on the page together with the evaluation's number; label: for screen readers. */
void pm_page_classes_open(struct pm_str *html, const struct result *r, const char *id,
                          const char *label, int classes);
/* Ends the rows and the table. If paper shows fewer classes, a sentence says how many. others:
 * number of rows before the classes. */
void pm_page_classes_close(struct pm_str *html, int classes, int others);
/* The name of a sample picture's file, or the number of its record. */
void pm_page_sample_file(struct pm_str *html, const cJSON *sample);
/* page_matrix.c: the card of the matrix. cells: gets an object of the list that the script
 * reads. */
void pm_page_matrix(struct pm_str *html, struct pm_str *cells, const struct result *r);
/* page_boxes.c: evaluations of detected boxes: a picture with its true and its detected boxes; the
 * curves, the kinds of errors and the classes. */
void pm_page_boxes_sample(struct pm_str *html, const struct result *r, const cJSON *sample);
void pm_page_boxes_cards(struct pm_str *html, struct pm_str *json, const struct result *r);
void pm_page_boxes_classes(struct pm_str *html, const struct result *r);
/* page_texts.c: an evaluation of texts: a picture with its text, what was read and, with attention,
 * where. */
void pm_page_texts_sample(struct pm_str *html, const struct result *r, const cJSON *sample);
/* page_stages.c: at which of two stages a detector loses objects. Writes nothing if the evaluation
 * has no member stages. */
void pm_page_stages(struct pm_str *html, const struct result *r);

#endif
