/* The loader: worker threads that fill a ring of batches ahead of the step.
 *
 * A process may own only a slice of the batch. Its loader makes only these examples, with the same
 * bytes as in the whole batch. `example` below is an index in the slice; its index in the whole
 * batch is slice.first + example.
 *
 * Work is numbered: example i of step s is ticket (s - first_step) * count + i. Workers take the
 * next few tickets under one lock, as soon as slot s % ring is free of older steps. So all workers
 * work on the oldest unfinished batch first, and a batch's content depends only on its number. In
 * training, global example g = s * batch + first + i is record permute(seed, g / count)[g % count],
 * or g % count in file order. This is an endless queue whose batches may straddle epochs. A slot's
 * states: free -> filling (step set, left counts down) -> ready -> out -> free; with several frames
 * free -> framing -> framed -> filling.
 *
 * Batches may have several frames. In training, the worker that opens a slot first reads the
 * headers of the whole batch's pictures and chooses the frame. In evaluation, a batch has records
 * of one group. A slot's arrays are allocated once, for the frame that needs most.
 *
 * If corrupt records are skipped, place p of a training epoch takes the first good record of the
 * order's places p, p + 1, ... That also depends only on the data and the number. In evaluation,
 * the good examples of the slice are moved together when the batch is complete. */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "data/loader_private.h"

#include <pumice/thread.h>
#include <pumice/trace.h>

enum { DEFAULT_RING = 4, MOST_GRAIN = 16, ERROR_TEXT = PM_SLOT_TEXT };

/* ---- tickets --------------------------------------------------------------------------------- */

/* Draws the number of the slot's batch. Called with the lock held, which it releases while it
 * draws. */
static bool draw_step(struct pm_loader *l, struct pm_slot *s, uint64_t *step)
{
    bool drawn;

    s->state = SLOT_FRAMING;
    pthread_mutex_unlock(&l->lock);
    drawn = l->o.draw(l->o.draw_ctx, step);
    pthread_mutex_lock(&l->lock);
    if (drawn)
        return true;
    s->state = SLOT_FREE;
    l->drawn_out = true;
    pthread_cond_broadcast(&l->ready);
    pthread_cond_broadcast(&l->freed);
    return false;
}

/* Gives the next step's free slot its number and its frame. Returns false if there is nothing to
 * do. Called with the lock held, which it releases while it draws or reads. */
static bool frame_slot(struct pm_loader *l, struct pm_slot *s, struct pm_loader_worker *w)
{
    uint64_t step = l->ticket_step;

    if (l->ticket_example > 0 || s->state != SLOT_FREE)
        return false;
    s->turn = step;
    s->err = PM_OK;
    if (l->o.draw && !draw_step(l, s, &step))
        return true;
    s->batch.step = step;
    if (l->o.groups) {
        uint64_t begin;
        const struct pm_frame_group *g = pm_group_of(&l->grouped, step, &begin);

        pm_loader_set_frame(l, s, g->frame, pm_loader_places_of(l, g));
        s->state = SLOT_FRAMED;
        return true;
    }
    if (l->o.frames_count == 0) {
        s->state = SLOT_FRAMED;
        return true;
    }
    s->state = SLOT_FRAMING;
    pthread_mutex_unlock(&l->lock);
    struct pm_frame frame = l->o.frame;
    const int err = pm_loader_choose_frame(l, w, step, &frame);
    pthread_mutex_lock(&l->lock);
    if (err < 0) {
        s->err = err;
        snprintf(s->text, sizeof s->text, "%s", pm_error_text());
    }
    pm_loader_set_frame(l, s, frame, l->o.slice.count);
    s->state = SLOT_FRAMED;
    pthread_cond_broadcast(&l->freed);
    return true;
}

/* Opens the slot of the next step if it has a frame. Returns true if tickets can be taken. Called
 * with the lock held. */
static bool open_slot(struct pm_loader *l, struct pm_slot *s)
{
    if (l->ticket_example > 0)
        return true;
    if (s->state != SLOT_FRAMED)
        return false;
    const int real = s->err < 0 ? 0 : pm_loader_examples_of(l, s->batch.step);
    s->state = SLOT_FILLING;
    s->left = real;
    s->err_example = l->o.slice.count;
    s->batch.valid = real;
    s->skipped = s->batch.skipped = 0;
    memset(s->empty, 0, (size_t)l->o.slice.count * sizeof *s->empty);
    for (int i = real; i < l->o.slice.count; i++)
        s->record[i] = 0;
    pm_slot_blank(s, real, s->batch.examples);
    return true;
}

/* Marks the slot ready after its last example. Called with the lock held. */
static void set_ready(struct pm_loader *l, struct pm_slot *s)
{
    s->state = SLOT_READY;
    pthread_cond_broadcast(&l->ready);
}

/* Waits for work; returns NULL if no work is left. Called with the lock held. */
static struct pm_slot *take(struct pm_loader *l, struct pm_loader_worker *w, int *begin, int *end)
{
    for (;;) {
        if (l->stop || l->drawn_out || (!l->o.train && l->ticket_step >= l->batches))
            return NULL;
        struct pm_slot *s = &l->slot[l->ticket_step % (uint64_t)l->o.ring];
        if (frame_slot(l, s, w))
            continue;
        if (open_slot(l, s)) {
            if (s->left == 0) { /* no frame holds the batch, or the pass's last batch has no
                                 * example in this slice */
                set_ready(l, s);
                l->ticket_step++;
                continue;
            }
            *begin = l->ticket_example;
            *end = *begin + l->grain < s->batch.valid ? *begin + l->grain : s->batch.valid;
            l->ticket_example = *end;
            if (*end == s->batch.valid) {
                l->ticket_step++;
                l->ticket_example = 0;
                pthread_cond_broadcast(&l->freed); /* others may open the next slot */
            }
            return s;
        }
        pthread_cond_wait(&l->freed, &l->lock);
    }
}

/* Completes a batch whose examples are all made. Only the thread that made the last one is here. */
static void complete(struct pm_loader *l, struct pm_slot *s)
{
    if (s->err < 0 || l->stop)
        return;
    s->batch.skipped = s->skipped;
    if (s->batch.skipped && !l->o.train)
        pm_slot_close_up(s);
    if (l->o.whole_batch)
        l->o.whole_batch(l->o.ctx, &s->batch);
}

static void give(struct pm_loader *l, struct pm_slot *s, int made, int err, int example,
                 const char *text)
{
    pthread_mutex_lock(&l->lock);
    if (err < 0 && example < s->err_example) {
        s->err = err;
        s->err_example = example;
        snprintf(s->text, sizeof s->text, "%s", text);
    }
    s->left -= made;
    const bool last = s->left == 0;
    pthread_mutex_unlock(&l->lock);
    if (!last)
        return;
    complete(l, s);
    pthread_mutex_lock(&l->lock);
    set_ready(l, s);
    pthread_mutex_unlock(&l->lock);
}

static void *work(void *arg)
{
    struct pm_loader *l = arg;
    struct pm_loader_worker w = { .out = pm_calloc((size_t)l->o.fields_count + 1, sizeof *w.out) };
    char name[32];

    pthread_mutex_lock(&l->lock);
    snprintf(name, sizeof name, "worker %d", l->started++);
    pthread_mutex_unlock(&l->lock);
    pm_trace_thread(pm_trace_lane(l->o.train ? "loader" : "evaluation's loader", name));
    pm_threads_set(1); /* loops inside `make` must not compete with other workers */
    for (;;) {
        int begin = 0, end = 0, err = PM_OK, failed = 0;
        pthread_mutex_lock(&l->lock);
        struct pm_slot *s = take(l, &w, &begin, &end);
        pthread_mutex_unlock(&l->lock);
        if (!s)
            break;
        for (int i = begin; i < end && err == PM_OK; i++) {
            if (l->stop)
                break;
            err = pm_loader_make(l, s, &w, i);
            failed = i;
        }
        give(l, s, end - begin, err, failed, err < 0 ? pm_error_text() : "");
    }
    pm_free(w.buf);
    pm_free(w.out);
    return NULL;
}

/* ---- the caller's side ----------------------------------------------------------------------- */

static void make_slots(struct pm_loader *l)
{
    size_t *most = NULL;

    l->slot = pm_calloc((size_t)l->o.ring, sizeof *l->slot);
    for (int i = 0; i < l->o.ring; i++) {
        struct pm_slot *s = &l->slot[i];

        pm_slot_create(s, i, l->o.slice.count, l->o.fields_count);
        if (!most)
            most = pm_loader_array_bytes(l, s);
        pm_loader_set_frame(l, s, l->o.frame, l->o.slice.count);
        for (int k = 0; k < l->o.fields_count; k++)
            s->batch.field[k] = pm_calloc(1, most[k]);
    }
    pm_free(most);
}

/* Blocks signals in the workers, because the main thread handles them. */
static int start_threads(struct pm_loader *l)
{
    sigset_t all, before;
    int failed = 0;

    l->thread = pm_calloc((size_t)l->o.threads, sizeof *l->thread);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (!failed && l->threads < l->o.threads) {
        failed = pthread_create(&l->thread[l->threads], NULL, work, l);
        l->threads += !failed;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return pm_fail(PM_EFAIL, "loader: thread %d of %d cannot be started: %s", l->threads + 1,
                       l->o.threads, strerror(failed));
    return PM_OK;
}

/* Restricts evaluation's pass to the loader's part of it. */
static void take_share(struct pm_loader *l)
{
    const uint64_t all = l->batches, count = (uint64_t)l->o.share.count;
    const uint64_t index = (uint64_t)l->o.share.index;

    l->first = l->ticket_step = l->next_step = all * index / count;
    l->batches = all * (index + 1) / count;
}

int pm_loader_create(struct pm_dataset *d, const struct pm_loader_options *o,
                     struct pm_loader **out)
{
    int err = PM_OK;
    struct pm_loader *l = pm_calloc(1, sizeof *l);

    l->dataset = d;
    assert(o->slice.first >= 0 && o->slice.first + o->slice.count <= o->batch);
    l->o = *o;
    if (o->slice.count == 0)
        l->o.slice = (struct pm_batch_slice){ 0, o->batch };
    l->count = pm_dataset_get_info(d)->count;
    l->o.threads = o->threads > 0 ? o->threads : pm_threads();
    l->o.ring = o->ring > 0 ? o->ring : DEFAULT_RING;
    l->ticket_step = l->next_step = o->first_step;
    l->grain = l->o.slice.count / (4 * l->o.threads);
    l->grain = l->grain < 1 ? 1 : l->grain > MOST_GRAIN ? MOST_GRAIN : l->grain;
    l->field = pm_calloc((size_t)o->fields_count + 1, sizeof *l->field);
    for (int k = 0; k < o->fields_count; k++)
        l->field[k] = o->fields[k];
    l->o.fields = l->field;
    l->batches = (l->count + (uint64_t)o->batch - 1) / (uint64_t)o->batch;
    if (o->groups) {
        pm_group_batches_open(&l->grouped, o->groups, o->batch);
        l->batches = l->grouped.first[o->groups->count];
    }
    if (o->share.most > 0 && o->share.most < l->batches)
        l->batches = o->share.most;
    if (o->share.count > 0)
        take_share(l);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->freed, NULL);
    pthread_cond_init(&l->ready, NULL);
    make_slots(l);
    PM_TRY(start_threads(l));
    *out = l, l = NULL;
out:
    pm_loader_destroy(&l);
    return err;
}

void pm_loader_destroy(struct pm_loader **p)
{
    struct pm_loader *l = *p;

    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->freed);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->threads; i++)
        pthread_join(l->thread[i], NULL);
    for (int i = 0; i < l->o.ring; i++)
        pm_slot_free(&l->slot[i], l->o.fields_count, l->o.free_host);
    pthread_cond_destroy(&l->ready);
    pthread_cond_destroy(&l->freed);
    pthread_mutex_destroy(&l->lock);
    pm_free(l->slot);
    pm_free(l->thread);
    pm_free(l->field);
    pm_group_batches_close(&l->grouped);
    pm_free(l);
    *p = NULL;
}

static void free_slot(struct pm_loader *l, struct pm_slot *s)
{
    pm_slot_free_host(s, l->o.free_host);
    s->state = SLOT_FREE;
    pthread_cond_broadcast(&l->freed);
}

/* Called with the lock held. */
static void count_ready(struct pm_loader *l)
{
    for (int i = 0; i < l->o.ring; i++)
        l->ready_slots += l->slot[i].state == SLOT_READY;
    l->takes++;
}

int pm_loader_next(struct pm_loader *l, struct pm_batch **out)
{
    int err = PM_OK;
    char text[ERROR_TEXT] = "";
    const double begun = pm_seconds();

    *out = NULL;
    if (!l->o.train && l->next_step >= l->batches)
        return PM_OK;
    pthread_mutex_lock(&l->lock);
    struct pm_slot *s = &l->slot[l->next_step % (uint64_t)l->o.ring];
    count_ready(l);
    while (s->state != SLOT_READY || s->turn != l->next_step) {
        if (l->drawn_out && l->next_step >= l->ticket_step) {
            pthread_mutex_unlock(&l->lock);
            return PM_OK;
        }
        pthread_cond_wait(&l->ready, &l->lock);
    }
    l->next_step++;
    l->waited += pm_seconds() - begun;
    if (s->err < 0) {
        err = s->err;
        memcpy(text, s->text, sizeof text);
        free_slot(l, s);
    } else {
        s->state = SLOT_OUT;
        *out = &s->batch;
    }
    pthread_mutex_unlock(&l->lock);
    return err < 0 ? pm_fail(err, "%s", text) : PM_OK;
}

void pm_loader_release(struct pm_loader *l, struct pm_batch *b)
{
    pthread_mutex_lock(&l->lock);
    free_slot(l, (struct pm_slot *)b);
    pthread_mutex_unlock(&l->lock);
}

double pm_loader_waited(const struct pm_loader *l)
{
    return l->waited;
}

double pm_loader_fill(struct pm_loader *l)
{
    if (l->takes)
        l->fill = (double)l->ready_slots / ((double)l->takes * l->o.ring);
    l->ready_slots = l->takes = 0;
    return l->fill;
}

int pm_loader_ring(const struct pm_loader *l)
{
    return l->o.ring;
}

uint64_t pm_loader_batches(const struct pm_loader *l)
{
    return l->batches - l->first;
}
