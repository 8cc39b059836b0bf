/* slow_pictures: names the pictures of a run that take long to decode. Such a picture delays its
 * batch in every epoch, and the speed alone does not show which picture it is. */
#ifndef PM_SLOW_PICTURES_H
#define PM_SLOW_PICTURES_H

#include <pumice/base.h>

/* The first NAMED pictures are named, one line each. Further ones are only counted: a line with
 * their sum comes at 10, 100, 1,000 ... slow pictures. Each picture counts once. */
enum { PM_SLOW_NAMED = 5, PM_SLOW_KNOWN = 4096 };
/* Processor time of one thread, so that a busy machine alone does not make pictures slow. */
#define PM_SLOW_SECONDS 1.0

/* Zeroed at the start. */
struct pm_slow_pictures {
    uint64_t known[PM_SLOW_KNOWN]; /* hashes of the names, an open table; 0: free */
    size_t count;                  /* pictures so far */
    double seconds;                /* their decoding time */
};
struct pm_slow_picture {
    const char *name; /* of the picture's file, or where its record is */
    int height, width;
    double seconds;
};
/* Counts a picture if it is slow and new. Returns true if a line was added to text. Not
 * thread-safe. */
bool pm_slow_pictures_add(struct pm_slow_pictures *s, const struct pm_slow_picture *p,
                          struct pm_str *text);
/* Adds the picture to those of this process and logs the line, if any, as a warning. Thread-safe;
 * quick if the picture is not slow. */
void pm_slow_picture_log(const struct pm_slow_picture *p);
/* Processor seconds of the calling thread. */
double pm_thread_seconds(void);

#endif
