/* interrupted: trains FOLDER/net.json undisturbed, killed several times, and with a lost device.
 * All three end with the same bits. same_after_kills, same_after_loss and same_in_parts are test
 * functions. */
#ifndef INTERRUPTED_H
#define INTERRUPTED_H

#include "e2e/program.h"
#include "e2e/same_run.h"

/* Trains in FOLDER/NAME with further options. */
static inline void train(const char *name, const char *more)
{
    check(run(NULL, "train %s run.folder=%s %s", in("net.json"), in("%s", name), more), 0);
}

/* A training of FOLDER/net.json. The names of its runs begin with prefix. */
struct training {
    const char *prefix, *more; /* more: further options */
};

/* FOLDER/PREFIXname; valid for a few calls, like in(). */
static inline const char *run_of(const struct training *t, const char *name)
{
    return in("%s%s", t->prefix, name);
}

/* Trains PREFIXwhole undisturbed, unless a test before did. */
static inline void train_undisturbed(const struct training *t)
{
    char name[64];

    snprintf(name, sizeof name, "%swhole", t->prefix);
    if (!pm_file_exists(in("%s/latest", name)))
        train(name, t->more);
}

static inline void train_whole(void)
{
    train_undisturbed(&(struct training){ "", "" });
}

/* The name of the last checkpoint in PREFIXtorn; NULL before the first. The caller frees it. */
static inline char *torn_checkpoint(const struct training *t)
{
    const char *latest = in("%storn/latest", t->prefix);

    return pm_file_exists(latest) ? get_text(latest) : NULL;
}

/* Whether the process has ended. finish() can still wait for it. */
static inline bool has_ended(pid_t pid)
{
    siginfo_t info = { 0 };

    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    return info.si_pid == pid;
}

/* Waits until the process writes a checkpoint other than `before`, or ends. */
static inline void wait_for_checkpoint(const struct training *t, pid_t pid, const char *before)
{
    for (bool ended = false, is_new = false; !ended && !is_new; usleep(2000)) {
        ended = has_ended(pid);
        char *now = torn_checkpoint(t);

        is_new = now && (!before || strcmp(now, before) != 0);
        pm_free(now);
    }
}

/* Trains PREFIXtorn and kills the program once it has written a new checkpoint. In the first round
 * step 10 hangs, so the program cannot end before it is killed. Later it may, with code 0. */
static inline void kill_after_checkpoint(const struct training *t, int round)
{
    char arguments[2048];
    char *before = torn_checkpoint(t);
    struct result r;
    pid_t pid;

    assert_true((before != NULL) == (round > 0));
    snprintf(arguments, sizeof arguments, "train %s run.folder=%s %s", in("net.json"),
             run_of(t, "torn"), t->more);
    pid = start(&(struct how){ .environment = round ? NULL : "PM_HANG=0:10" }, in("torn%d", round),
                arguments);
    wait_for_checkpoint(t, pid, before);
    kill(pid, SIGKILL);
    r = finish(pid, in("torn%d", round));
    if (r.code != -SIGKILL && (round == 0 || r.code != 0))
        fail_msg("round %d ended with %d instead of SIGKILL: %s", round, r.code, r.err);
    if (round > 0)
        assert_contains(r.err, "resuming");
    drop(&r);
    pm_free(before);
    assert_true(pm_file_exists(in("%storn/latest", t->prefix)));
}

/* PREFIXtorn, killed up to three times, ends like PREFIXwhole. */
static inline void assert_same_after_kills(const struct training *t)
{
    char name[64];

    train_undisturbed(t);
    for (int round = 0; round < 3; round++)
        kill_after_checkpoint(t, round);
    snprintf(name, sizeof name, "%storn", t->prefix);
    train(name, t->more);
    same_run(run_of(t, "whole"), run_of(t, "torn"));
}

static inline void same_after_kills(void **state)
{
    (void)state;
    assert_same_after_kills(&(struct training){ "", "" });
}

/* PREFIXlost, whose device is lost once, ends like PREFIXwhole. */
static inline void assert_same_after_loss(const struct training *t)
{
    struct result r = run(&(struct how){ .environment = "PM_LOSE=0:14" },
                          "train %s run.folder=%s run.snapshot_every_steps=3 %s", in("net.json"),
                          run_of(t, "lost"), t->more);

    assert_contains(r.err, "was lost, as PM_LOSE requests");
    check(r, 0);
    train_undisturbed(t);
    same_run(run_of(t, "whole"), run_of(t, "lost"));
}

static inline void same_after_loss(void **state)
{
    (void)state;
    assert_same_after_loss(&(struct training){ "", "" });
}

/* Two clones of unequal parts, and micro-batches, learn what one device learns in 10 steps. Sums in
 * another order differ by rounding: 1e-6 of the loss in a step, and the difference grows slowly
 * with the steps that follow. Trains one, two and micro, with a prefix and further options. */
static inline void assert_same_in_parts(const char *prefix, const char *more)
{
    static const char *const ways[][2] = {
        { "one", "" },
        { "two", "'devices=[{\"name\":\"cpu\",\"share\":2},{\"name\":\"cpu\",\"share\":1}]'" },
        { "micro", "run.micro_batches=3" },
    };
    char name[PM_COUNT(ways)][64], text[512];

    for (size_t i = 0; i < PM_COUNT(ways); i++) {
        snprintf(name[i], sizeof name[i], "%s%s", prefix, ways[i][0]);
        snprintf(text, sizeof text, "run.steps=10 eval.every_steps=0 %s %s", ways[i][1], more);
        train(name[i], text);
        if (i > 0)
            same_losses(name[0], name[i], 1, 10, 1e-5);
    }
}

static inline void same_in_parts(void **state)
{
    (void)state;
    assert_same_in_parts("", "");
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
