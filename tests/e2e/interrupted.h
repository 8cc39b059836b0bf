/* interrupted: trains FOLDER/net.json undisturbed, killed at several moments, and with a lost
 * device. All three end with the same bits. */
#ifndef INTERRUPTED_H
#define INTERRUPTED_H

#include "e2e/program.h"
#include "e2e/same_run.h"

/* Trains in FOLDER/NAME with further options. */
static inline void train(const char *name, const char *more)
{
    check(run(NULL, "train %s run.folder=%s %s", in("net.json"), in("%s", name), more), 0);
}

/* Compares FOLDER/torn, killed three times, with FOLDER/whole, which exists. */
static inline void assert_same_after_kills(void)
{
    for (int i = 0; i < 3; i++) {
        char arguments[2048];
        struct result killed;
        pid_t pid;

        snprintf(arguments, sizeof arguments, "train %s run.folder=%s", in("net.json"),
                 in("torn"));
        pid = start(NULL, in("torn%d", i), arguments);
        usleep(120000 * (useconds_t)(i + 1));
        kill(pid, SIGKILL);
        killed = finish(pid, in("torn%d", i));
        drop(&killed);
    }
    train("torn", "");
    same_run(in("whole"), in("torn"));
}

/* Compares FOLDER/lost, whose device is lost once, with FOLDER/whole. */
static inline void assert_same_after_loss(void)
{
    struct result r = run(&(struct how){ .environment = "PM_LOSE=0:14" },
                          "train %s run.folder=%s run.snapshot_every_steps=3", in("net.json"),
                          in("lost"));

    assert_contains(r.err, "was lost, as PM_LOSE requests");
    check(r, 0);
    same_run(in("whole"), in("lost"));
}

#endif
