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

/* Two clones of unequal parts, and micro-batches, learn what one device learns in 10 steps. Sums in
 * another order differ by rounding: 1e-6 of the loss in a step, and the difference grows slowly
 * with the steps that follow. Trains one, two and micro. */
static inline void assert_same_in_parts(void)
{
    static const char more[] = "run.steps=10 eval.every_steps=0";
    char text[512];

    train("one", more);
    snprintf(text, sizeof text, "%s '%s'", more,
             "devices=[{\"name\":\"cpu\",\"share\":2},{\"name\":\"cpu\",\"share\":1}]");
    train("two", text);
    same_losses("one", "two", 1, 10, 1e-5);
    snprintf(text, sizeof text, "%s run.micro_batches=3", more);
    train("micro", text);
    same_losses("one", "micro", 1, 10, 1e-5);
}

/* Writes a picture of 24 x 48 pixels whose right half is light. */
static inline void put_halves(const char *name)
{
    struct pm_str ppm = { 0 };

    pm_str_add(&ppm, "P6 48 24 255\n");
    for (int i = 0; i < 24 * 48; i++)
        pm_str_add(&ppm, "%s", i % 48 > 24 ? "zzz" : "   ");
    put_text(in("%s", name), ppm.text);
    pm_str_free(&ppm);
}

#endif
