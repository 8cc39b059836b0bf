/* voc_xml, internal to data/convert: reads annotation files of PASCAL VOC (xml_fields.h). */
#ifndef PUMICE_DATA_CONVERT_VOC_XML_H
#define PUMICE_DATA_CONVERT_VOC_XML_H

#include <pumice/base.h>

struct pm_voc_object {
    const char *name;
    const char *pose;        /* or NULL */
    bool truncated, difficult;
    double box[4];           /* ymin, xmin, ymax, xmax: pixels as in the file */
    unsigned line;           /* of <object> */
};
struct pm_voc_file {
    const char *filename;    /* or NULL */
    int width, height;       /* 0: the file does not state them */
    struct pm_voc_object *object; /* owned: pm_voc_free */
    size_t count, capacity;
};
/* Reads /annotation/{filename,size,object}; other elements are ignored. Texts are in the arena.
 * PM_EDATA with the line for: what pm_xml_read refuses; an object without name or box; a number
 * that is none. The caller frees out, also after an error. */
int pm_voc_read(struct pm_arena *a, const char *path, struct pm_voc_file *out);
void pm_voc_free(struct pm_voc_file *f);

#endif
