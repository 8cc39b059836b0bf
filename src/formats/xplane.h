/* xplane: a timeline in the format of TensorBoard's profiler (XSpace of TensorFlow's xplane.proto).
 * TensorBoard's profile plugin opens FOLDER/plugins/profile/NAME/HOST.xplane.pb, if FOLDER is below
 * its --logdir. A group of rows is a plane, a row is a line of it. */
#ifndef PUMICE_FORMATS_XPLANE_H
#define PUMICE_FORMATS_XPLANE_H

#include <pumice/base.h>

struct pm_xplane;
struct pm_xplane *pm_xplane_create(void);
void pm_xplane_destroy(struct pm_xplane **x);
/* Adds a span of a row. begin and end: seconds since the timeline's start. detail: a second line,
 * or NULL. Texts are copied. Spans of one row that follow each other are added fastest. */
void pm_xplane_span(struct pm_xplane *x, const char *group, const char *row, const char *name,
                    const char *detail, double begin, double end);
/* Writes the timeline to folder/plugins/profile/name, which it makes. The file has the name of this
 * machine. Returns PM_EFAIL if the file cannot be written. */
int pm_xplane_write(const struct pm_xplane *x, const char *folder, const char *name);

#endif
