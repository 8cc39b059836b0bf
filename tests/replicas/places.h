/* places: runs a function in several ranks, which are threads of one process. */
#ifndef PLACES_H
#define PLACES_H

#include "replicas/threads_transport.h"

#include <pumice/replicas.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* One rank: body(rank) runs in its thread, and its results are checked by the main thread. */
struct place {
    pthread_t thread;
    struct wires *wires;
    struct pm_replicas *r;
    void (*body)(struct place *p);
    const void *ctx;
    int rank, err;
    char text[640];
    bool right;
};

static void *run_place(void *arg)
{
    struct place *p = arg;

    p->err = pm_replicas_open(&threads_transport, p->wires, &p->r);
    if (p->err == PM_OK) {
        p->rank = pm_replicas_rank(p->r);
        p->body(p);
    }
    p->err = pm_replicas_leave(&p->r, p->err);
    if (p->err < 0)
        snprintf(p->text, sizeof p->text, "%s", pm_error_text());
    return NULL;
}

static void run_places(struct wires *w, struct place *p, void (*body)(struct place *p),
                       const void *ctx)
{
    for (int i = 0; i < w->ranks; i++) {
        p[i] = (struct place){ .wires = w, .body = body, .ctx = ctx };
        assert_int_equal(pthread_create(&p[i].thread, NULL, run_place, &p[i]), 0);
    }
    for (int i = 0; i < w->ranks; i++)
        pthread_join(p[i].thread, NULL);
}

#endif
