/* tensorboard, internal: creates event files with a given time in their name. */
#ifndef PUMICE_FORMATS_TENSORBOARD_H
#define PUMICE_FORMATS_TENSORBOARD_H

#include <pumice/formats.h>

/* Like pm_events_create, with the time of the file in seconds since 1970. */
int pm_events_create_at(const char *folder, long long seconds, struct pm_events **out);

#endif
