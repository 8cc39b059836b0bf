/* tensorboard, inside the library: event files made at a given time. */
#ifndef PUMICE_FORMATS_TENSORBOARD_H
#define PUMICE_FORMATS_TENSORBOARD_H

#include <pumice/formats.h>

/* pm_events_create with the file's second since 1970. */
int pm_events_create_at(const char *folder, long long seconds, struct pm_events **out);

#endif
