/* trainer_end: the two lines at the end of a training: what was done, and what to type next. */
#include "checkpoints/checkpoint_files.h"
#include "train/trainer.h"

#include <string.h>

/* Adds the folder in the form that a shell reads as one word. */
static void add_word(struct pm_str *s, const char *word)
{
    const bool plain = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789_./-+:@%,") == strlen(word) && *word && *word != '-';

    if (plain) {
        pm_str_add(s, "%s", word);
        return;
    }
    pm_str_add(s, "'");
    for (; *word; word++)
        pm_str_add(s, *word == '\'' ? "'\\''" : "%c", *word);
    pm_str_add(s, "'");
}

/* Adds "; the best accuracy is 0.98, at step 30". Returns whether there is a best checkpoint. */
static bool add_best(struct pm_str *s, const struct pm_trainer *t)
{
    struct best best = { 0 };
    struct pm_str folder = { 0 };
    bool found = false;

    pm_ckpt_folder(&folder, t->run.c->run.folder);
    if (pm_ckpt_best_read(folder.text, &best) < 0)
        PM_WARN("train", "%s", pm_error_text());
    found = best.metric != NULL;
    if (found)
        pm_str_add(s, "; the best %s is %.4g, at step %llu", best.metric, best.value,
                   (unsigned long long)best.step);
    pm_ckpt_best_free(&best);
    pm_str_free(&folder);
    return found;
}

void pm_trainer_say_end(const struct pm_trainer *t)
{
    const uint64_t done = t->run.step - t->start.first_step;
    struct pm_str text = { 0 }, run = { 0 };

    add_word(&run, t->run.c->run.folder);
    pm_str_add(&text, "%llu %s in ", (unsigned long long)done,
               pm_plural((double)done, "step", "steps"));
    pm_str_duration(&text, pm_seconds() - t->loop.started_at);
    const char *best = t->saving.best && add_best(&text, t) ? " eval.checkpoint=best" : "";
    if (done > 0)
        PM_INFO("train", "done: %s; report: %s/report.html", text.text, t->run.c->run.folder);
    PM_INFO("train", "next: pumice eval %s%s; pumice predict %s PICTURES%s; pumice export %s%s",
            run.text, best, run.text, best, run.text, best);
    pm_str_free(&text);
    pm_str_free(&run);
}
