/* Requests between ranks, which are threads of one process. Each rank sends requests of many sizes
 * to every rank, itself included, on both lines at once, and receives the right replies, also if
 * messages are late. A request whose turn has not come waits. Repeated requests allocate nothing.
 * The end waits for all ranks. If a rank fails or falls silent, all requests end with its error. */
#include "replicas/places.h"

#include <unistd.h>

enum { ECHO = 1, TURN };

/* Replies to each request with its data in reverse, and its word plus 1. */
static int reply(struct pm_replica_inbox *inbox, const struct pm_replica_request *q)
{
    char *to = pm_replica_inbox_space(inbox, q, q->size);
    uint64_t word;

    memcpy(&word, q->word, sizeof word);
    word++;
    for (size_t i = 0; i < q->size; i++)
        to[i] = q->data[q->size - 1 - i];
    pm_replica_inbox_reply(inbox, q, &word, sizeof word);
    return PM_OK;
}

struct server {
    pthread_t thread;
    struct pm_replica_inbox *inbox;
    int err;
};

static void *serve(void *arg)
{
    struct server *s = arg;
    struct pm_replica_request q;
    bool over = false;

    while (s->err == PM_OK && !over) {
        s->err = pm_replica_inbox_take(s->inbox, NULL, NULL, &q, &over);
        if (s->err == PM_OK && !over)
            s->err = reply(s->inbox, &q);
    }
    return NULL;
}

static void start_server(struct server *s, struct pm_replicas *r)
{
    s->inbox = pm_replica_inbox_create(r, pm_replicas_count(r));
    s->err = PM_OK;
    pthread_create(&s->thread, NULL, serve, s);
}

static void end_server(struct server *s, int err)
{
    if (err < 0)
        pm_replica_inbox_close(s->inbox);
    pthread_join(s->thread, NULL);
    pm_replica_inbox_destroy(&s->inbox);
}

static int echo(struct pm_replica_call *c, uint64_t word, size_t size, int seed, bool *right)
{
    char *out = pm_replica_call_space(c, size);
    const char *data;
    uint64_t back = 0;
    size_t length;
    int err = PM_OK;

    for (size_t i = 0; i < size; i++)
        out[i] = (char)((int)(i * 7) + seed);
    pm_replica_call_start(c, ECHO, &word, sizeof word);
    PM_TRY(pm_replica_call_wait(c, &back, sizeof back, &data, &length));
    *right &= back == word + 1 && length == size;
    for (size_t i = 0; i < size && *right; i++)
        *right &= data[i] == (char)((int)((size - 1 - i) * 7) + seed);
out:
    return err;
}

/* Sends requests on one line to all ranks. */
struct sender {
    pthread_t thread;
    struct pm_replica_inbox *inbox;
    int rank, ranks, line, err;
    bool right;
};

static void *send_all(void *arg)
{
    enum { LARGE = (16 << 20) + 5 }; /* two messages */
    static const size_t sizes[] = { 0, 1, 4095, LARGE, 0, 70000, 3 };
    struct sender *s = arg;
    struct pm_replica_call *call[WIRE_RANKS];
    int err = PM_OK;

    s->right = true;
    for (int k = 0; k < s->ranks; k++)
        call[k] = pm_replica_call_create(s->inbox, k, s->line);
    for (size_t i = 0; i < PM_COUNT(sizes); i++)
        for (int k = 0; k < s->ranks; k++) {
            const size_t size = sizes[i] == LARGE && (k != 1 || s->line) ? 5 : sizes[i];

            PM_TRY(echo(call[k], i + (size_t)s->rank * 100, size, s->rank * 31 + s->line,
                        &s->right));
        }
out:
    for (int k = 0; k < s->ranks; k++)
        pm_replica_call_destroy(&call[k]);
    s->err = err;
    return NULL;
}

static void echo_body(struct place *p)
{
    struct server server;
    struct sender sender[PM_REPLICA_LINES];
    int err = PM_OK;

    start_server(&server, p->r);
    for (int i = 0; i < PM_REPLICA_LINES; i++) {
        sender[i] = (struct sender){ .inbox = server.inbox, .rank = p->rank, .line = i,
                                     .ranks = pm_replicas_count(p->r) };
        pthread_create(&sender[i].thread, NULL, send_all, &sender[i]);
    }
    p->right = true;
    for (int i = 0; i < PM_REPLICA_LINES; i++) {
        pthread_join(sender[i].thread, NULL);
        p->right &= sender[i].right && sender[i].err == PM_OK;
    }
    err = pm_replica_inbox_end(server.inbox);
    end_server(&server, err);
    p->right &= server.err == PM_OK;
    p->err = err;
}

static void requests_get_their_replies(void **state)
{
    struct place p[WIRE_RANKS];

    (void)state;
    for (int ranks = 2; ranks <= 5; ranks++) {
        struct wires *w = wires_create(ranks, ranks % 2 ? 30 : 0);

        run_places(w, p, echo_body, NULL);
        for (int i = 0; i < ranks; i++) {
            assert_int_equal(p[i].err, PM_OK);
            assert_true(p[i].right);
        }
        wires_destroy(&w);
    }
}

/* ---- turns ------------------------------------------------------------------------------- */

struct turns {
    int taken[9], count;
};

static bool may(void *ctx, const struct pm_replica_request *q)
{
    static const int order[] = { 2, 0, 1 };
    const struct turns *t = ctx;

    return q->kind == ECHO || q->rank == order[t->count % 3];
}

/* Rank 0 takes requests in the order 2, 0, 1, whenever they arrive. Others come between. */
static void *serve_turns(void *arg)
{
    struct server *s = arg;
    struct turns t = { 0 };
    struct pm_replica_request q;
    bool over = false;

    while (s->err == PM_OK && !over) {
        s->err = pm_replica_inbox_take(s->inbox, may, &t, &q, &over);
        if (s->err < 0 || over)
            continue;
        if (q.kind == TURN)
            t.taken[t.count++] = q.rank;
        s->err = reply(s->inbox, &q);
    }
    for (int i = 0; i < 9 && s->err == PM_OK; i++)
        s->err = t.taken[i] == (i + 2) % 3 ? PM_OK : PM_EFAIL;
    return NULL;
}

static void turns_body(struct place *p)
{
    struct server s = { .inbox = pm_replica_inbox_create(p->r, pm_replicas_count(p->r)) };
    struct pm_replica_call *call = pm_replica_call_create(s.inbox, 0, 0);
    struct pm_replica_call *other = pm_replica_call_create(s.inbox, 0, 1);
    uint64_t word = 0;
    int err = PM_OK;

    pthread_create(&s.thread, NULL, p->rank == 0 ? serve_turns : serve, &s);
    p->right = true;
    for (int i = 0; i < 3; i++) {
        usleep((useconds_t)(3000 * ((p->rank + i) % 3)));
        pm_replica_call_start(call, TURN, &word, sizeof word);
        PM_TRY(echo(other, 5, 10, i, &p->right)); /* is not held up */
        PM_TRY(pm_replica_call_wait(call, &word, sizeof word, NULL, NULL));
    }
    p->right &= word == 3;
    PM_TRY(pm_replica_inbox_end(s.inbox));
out:
    if (err < 0)
        pm_replica_inbox_close(s.inbox);
    pthread_join(s.thread, NULL);
    p->right &= s.err == PM_OK;
    pm_replica_call_destroy(&call);
    pm_replica_call_destroy(&other);
    pm_replica_inbox_destroy(&s.inbox);
    p->err = err;
}

static void a_request_waits_for_its_turn(void **state)
{
    struct wires *w = wires_create(3, 5);
    struct place p[WIRE_RANKS];

    (void)state;
    run_places(w, p, turns_body, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(p[i].err, PM_OK);
        assert_true(p[i].right);
    }
    wires_destroy(&w);
}

/* ---- memory ------------------------------------------------------------------------------ */

/* Only rank 0 sends requests, so the others allocate nothing of their own. */
static void steady_body(struct place *p)
{
    struct server s;
    struct pm_replica_call *call;
    uint64_t before = 0;
    int err = PM_OK;

    start_server(&s, p->r);
    call = pm_replica_call_create(s.inbox, 1, 0);
    p->right = true;
    for (int i = 0; p->rank == 0 && i < 40; i++) {
        before = i == 10 ? pm_alloc_count() : before;
        PM_TRY(echo(call, 1, 100000, i, &p->right));
    }
    p->right &= p->rank > 0 || pm_alloc_count() == before;
    PM_TRY(pm_replica_inbox_end(s.inbox));
out:
    pm_replica_call_destroy(&call);
    end_server(&s, err);
    p->err = err;
}

static void repeated_requests_allocate_nothing(void **state)
{
    struct wires *w = wires_create(2, 2);
    struct place p[WIRE_RANKS];

    (void)state;
    run_places(w, p, steady_body, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(p[i].err, PM_OK);
        assert_true(p[i].right);
    }
    wires_destroy(&w);
}

/* ---- failures ---------------------------------------------------------------------------- */

/* All send requests until an error comes. Rank 1 fails after a few. */
static void failing_body(struct place *p)
{
    const char *how = p->ctx;
    const int ranks = pm_replicas_count(p->r);
    struct server s;
    struct pm_replica_call *call;
    int err = PM_OK;

    start_server(&s, p->r);
    call = pm_replica_call_create(s.inbox, (p->rank + 1) % ranks, 0);
    if (strcmp(how, "silent") == 0)
        pm_replicas_limits(p->r, 2, 0);
    p->right = true;
    for (int i = 0; i < 100000; i++) {
        if (p->rank == 1 && i == 5) {
            if (strcmp(how, "fails") == 0)
                PM_TRY(pm_fail(PM_EDATA, "shard 7 is damaged"));
            if (strcmp(how, "serves") == 0) { /* the thread that takes requests fails */
                pm_fail(PM_EDATA, "shard 7 is damaged");
                pm_replica_inbox_fail(s.inbox, PM_EDATA);
            }
            if (strcmp(how, "silent") == 0)
                atomic_store(&p->wires->held[1], true);
        }
        PM_TRY(echo(call, 1, 300000, i, &p->right));
    }
out:
    pm_replica_call_destroy(&call);
    end_server(&s, err);
    p->err = err;
}

static void a_failure_ends_all_requests(void **state)
{
    static const char *const ways[] = { "fails", "serves", "silent" };
    struct place p[WIRE_RANKS];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(ways); i++) {
        struct wires *w = wires_create(3, 2);

        run_places(w, p, failing_body, ways[i]);
        for (int k = 0; k < 3; k++) {
            assert_true(p[k].err < 0);
            if (i < 2)
                assert_non_null(strstr(p[k].text, "shard 7 is damaged"));
            else if (k != 1)
                assert_int_equal(p[k].err, PM_ELOST);
        }
        wires_destroy(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_get_their_replies),
        cmocka_unit_test(a_request_waits_for_its_turn),
        cmocka_unit_test(repeated_requests_allocate_nothing),
        cmocka_unit_test(a_failure_ends_all_requests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
