/* tensorboard, internal: event files with a given time in their name, and messages of plugins. */
#ifndef PUMICE_FORMATS_TENSORBOARD_H
#define PUMICE_FORMATS_TENSORBOARD_H

#include <pumice/formats.h>

/* Like pm_events_create, with the time of the file in seconds since 1970. */
int pm_events_create_at(const char *folder, long long seconds, struct pm_events **out);
/* Adds a message for a plugin of TensorBoard to the collected values. It is copied. */
void pm_events_plugin(struct pm_events *e, const char *tag, const char *plugin,
                      const void *content, size_t size);

#endif
