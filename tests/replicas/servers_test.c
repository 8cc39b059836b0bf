/* Asynchronous training against a serial reference in double precision that shares no code with
 * src/. Workers are threads of one process. Their gradients are functions of the values that they
 * have read, and owners take them in the order PM_ORDER. Tested with the owners in the workers and
 * in other ranks, with momentum and adam, weight decay, multipliers, a frozen variable, both kinds
 * of clipping, the variables' averages, and batch norm's moving averages. All layouts give the same
 * bits.
 *
 * The same of synchronous training with a backup: worker 2 comes late, and the update is the mean
 * of the gradients of workers 0 and 1. */
#include "clones/host_copy.h"
#include "clones/remote.h"
#include "replicas/places.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <unistd.h>

enum { STEPS = 24, WORKERS = 2, DIM = 5, MOST_FLOATS = 256, ORDER = 4 };
static const int order[ORDER] = { 0, 1, 1, 0 };
static const char order_text[] = "0,1,1,0";
static const float weight_decay = 0.01f, clip_variable = 0.9f, clip_all = 1.3f;
static const float bn_decay = 0.9f;

static int build(void *ctx, int batch, int height, int width, struct pm_net **out)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "x", PM_SHAPE4(batch, height, width, DIM), PM_F32);
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE1(batch), PM_I32);

    (void)ctx;
    x = pm_net_add(net, "flatten", x, "flatten");
    x = pm_net_add(net, "fc1", x, "fully_connected units=7");
    x = pm_net_add(net, "norm", x, "batch_norm decay=0.9 scale=true");
    x = pm_net_add(net, "fc2", x, "fully_connected units=3");
    pm_net_add_many(net, "loss", (struct pm_node *[]){ x, labels }, 2, "softmax_cross_entropy");
    *out = net;
    return net->error;
}

static float multiplier(const char *variable, void *ctx)
{
    (void)ctx;
    return strcmp(variable, "fc2/biases") == 0   ? 0
           : strcmp(variable, "fc1/weights") == 0 ? 2
                                                  : 1;
}

/* ---- what all depends on: functions of numbers ------------------------------------------- */

static float noise(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t u = a * 2654435761u ^ b * 40503u ^ c * 977u;

    u = (u ^ u >> 15) * 2246822519u;
    u = (u ^ u >> 13) * 3266489917u;
    return (float)(int32_t)(u ^ u >> 16) * 0x1p-31f;
}

static float first_value(int variable, size_t i)
{
    return 0.5f * noise((uint32_t)variable, (uint32_t)i, 1);
}

/* The gradient of step n is slope * value + shift. */
static float slope(uint64_t n, int variable, size_t i)
{
    return 0.3f + 0.2f * noise((uint32_t)n, (uint32_t)(variable * 100) + (uint32_t)i, 2);
}

static float shift(uint64_t n, int variable, size_t i)
{
    return noise((uint32_t)n, (uint32_t)(variable * 100) + (uint32_t)i, 3);
}

static struct pm_step step_of(uint64_t n)
{
    return (struct pm_step){
        .step = (uint32_t)n, .lr = 0.05f / (float)(1 + n / 8), .loss_scale = 1,
        .beta1_power = (float)pow(0.9, (double)n + 1),
        .beta2_power = (float)pow(0.999, (double)n + 1),
        .ema_decay = (1 + (float)(n + 1)) / (10 + (float)(n + 1)) };
}

/* ---- the reference ----------------------------------------------------------------------- */

struct model {
    double value[MOST_FLOATS], slot[2][MOST_FLOATS], average[MOST_FLOATS];
    double read[WORKERS][MOST_FLOATS]; /* what each worker has read */
};

/* The variables, by name; place: in a block without paddings. */
struct named {
    char name[64];
    size_t count, place;
    bool trainable, regularize;
};
struct names {
    struct named list[16];
    int count;
    size_t floats;
};

static void list_names(const struct pm_variables *v, struct names *out)
{
    *out = (struct names){ .count = v->count };
    for (int i = 0; i < v->count; i++) {
        struct named *k = &out->list[i];

        snprintf(k->name, sizeof k->name, "%s", v->list[i].name);
        k->count = pm_shape_count(v->list[i].shape);
        k->place = out->floats;
        k->trainable = v->list[i].trainable;
        k->regularize = v->list[i].regularize;
        out->floats += k->count;
    }
}

/* Computes a worker's prepared gradient, by the values that it has read. */
static void prepare(const struct names *names, const double *w, uint64_t n, double *g)
{
    double square_all = 0, norm_all;

    for (int i = 0; i < names->count; i++) {
        const struct named *k = &names->list[i];
        double square = 0, factor;

        for (size_t e = 0; k->trainable && e < k->count; e++) {
            double *to = &g[k->place + e];

            *to = (double)slope(n, i, e) * w[k->place + e] + (double)shift(n, i, e);
            *to += k->regularize ? (double)weight_decay * w[k->place + e] : 0;
            *to *= (double)multiplier(k->name, NULL);
            square += *to * *to;
        }
        factor = sqrt(square) > (double)clip_variable ? (double)clip_variable / sqrt(square) : 1;
        for (size_t e = 0; k->trainable && e < k->count; e++)
            g[k->place + e] *= factor;
        square_all += square * factor * factor;
    }
    norm_all = sqrt(square_all);
    for (size_t e = 0; e < names->floats; e++)
        g[e] *= norm_all > (double)clip_all ? (double)clip_all / norm_all : 1;
}

static void update_element(struct model *m, size_t e, double g, const struct pm_step *s, bool adam)
{
    const double lr = (double)s->lr;

    if (adam) {
        const double b1 = (double)0.9f, b2 = (double)0.999f;
        const double alpha = lr * sqrt(1 - (double)s->beta2_power) / (1 - (double)s->beta1_power);

        m->slot[0][e] = b1 * m->slot[0][e] + (1 - b1) * g;
        m->slot[1][e] = b2 * m->slot[1][e] + (1 - b2) * g * g;
        m->value[e] -= alpha * m->slot[0][e] / (sqrt(m->slot[1][e]) + 0.5);
    } else {
        m->slot[0][e] = (double)0.9f * m->slot[0][e] + g;
        m->value[e] -= lr * m->slot[0][e];
    }
}

static void reference(const struct names *names, bool adam, struct model *m, uint64_t steps)
{
    *m = (struct model){ 0 };
    for (int i = 0; i < names->count; i++)
        for (size_t e = 0; e < names->list[i].count; e++)
            m->value[names->list[i].place + e] = (double)first_value(i, e);
    memcpy(m->average, m->value, sizeof m->average);
    for (int k = 0; k < WORKERS; k++)
        memcpy(m->read[k], m->value, sizeof m->value);
    for (uint64_t n = 0; n < steps; n++) {
        const int worker = order[n % ORDER];
        const struct pm_step s = step_of(n);
        double g[MOST_FLOATS] = { 0 };

        prepare(names, m->read[worker], n, g);
        for (int i = 0; i < names->count; i++)
            for (size_t e = 0; e < names->list[i].count; e++) {
                const size_t at = names->list[i].place + e;

                if (!names->list[i].trainable)
                    m->value[at] = (double)bn_decay * m->value[at] +
                                   (1 - (double)bn_decay) * (double)shift(n, i, e);
                else if (multiplier(names->list[i].name, NULL) != 0)
                    update_element(m, at, g[at], &s, adam);
                m->average[at] -= (1 - (double)s.ema_decay) * (m->average[at] - m->value[at]);
            }
        memcpy(m->read[worker], m->value, sizeof m->value);
    }
}

/* The same with backups: each step has the gradients 2 n and 2 n + 1. */
static void reference_backed(const struct names *names, bool adam, struct model *m)
{
    reference(names, adam, m, 0);
    for (uint64_t n = 0; n < STEPS; n++) {
        const struct pm_step s = step_of(n);
        double g[2][MOST_FLOATS] = { { 0 } };

        for (int k = 0; k < 2; k++)
            prepare(names, m->value, 2 * n + (uint64_t)k, g[k]);
        for (int i = 0; i < names->count; i++)
            for (size_t e = 0; e < names->list[i].count; e++) {
                const size_t at = names->list[i].place + e;

                for (uint64_t k = 0; k < 2 && !names->list[i].trainable; k++)
                    m->value[at] = (double)bn_decay * m->value[at] +
                                   (1 - (double)bn_decay) * (double)shift(2 * n + k, i, e);
                if (names->list[i].trainable && multiplier(names->list[i].name, NULL) != 0)
                    update_element(m, at, (g[0][at] + g[1][at]) / 2, &s, adam);
                m->average[at] -= (1 - (double)s.ema_decay) * (m->average[at] - m->value[at]);
            }
    }
}

/* ---- the processes ----------------------------------------------------------------------- */

struct setup {
    bool adam, backed;
    int servers;
    struct names names;              /* written by rank 0, as is state */
    float state[4][MOST_FLOATS];     /* values, two slots, averages */
};

static const struct pm_frame frame = { 1, 1 };

static void make_options(const struct setup *s, void *cfg, struct pm_arena *arena,
                         struct pm_clones_options *out)
{
    const struct pm_optimizer *o = pm_optimizer_find(s->adam ? "adam" : "momentum");
    struct cJSON *text = NULL;

    pm_opts_defaults(o->opts, cfg, arena);
    pm_json_parse("t", s->adam ? "{\"epsilon\": 0.5}" : "{}", &text);
    pm_opts_parse(o->opts, text, NULL, cfg, arena, "t");
    cJSON_Delete(text);
    *out = (struct pm_clones_options){
        .micro_batches = 1, .frames = &frame, .frames_count = 1, .build = build,
        .device.hang_seconds = INFINITY,
        .update = { .optimizer = o, .cfg = cfg, .weight_decay = weight_decay,
                    .clip_norm = clip_all, .clip_variable_norm = clip_variable,
                    .multiplier = multiplier, .all = true, .averages = true } };
}

/* Sets the first values. */
static int set_first(struct pm_variables *v)
{
    float values[MOST_FLOATS];
    int err = PM_OK;

    for (int i = 0; i < v->count; i++) {
        for (size_t e = 0; e < pm_shape_count(v->list[i].shape); e++)
            values[e] = first_value(i, e);
        PM_TRY(pm_variables_write(v, i, -1, values));
    }
    PM_TRY(pm_variables_start_averages(v));
out:
    return err;
}

/* Writes the gradient of step n, and what the worker's clone adds to the moving averages. */
static int make_gradient(const struct pm_host_copy *h, struct pm_moving *m, uint64_t n)
{
    const struct pm_variables *v = h->variables;
    float w[MOST_FLOATS], g[MOST_FLOATS];
    int err = PM_OK;

    for (int i = 0; i < v->count; i++) {
        const size_t count = pm_shape_count(v->list[i].shape), offset = v->offset[i];

        PM_TRY(pm_variables_read(h->variables, i, -1, w));
        for (size_t e = 0; e < count; e++) {
            const size_t at = (offset - m->offset) / sizeof(float) + e;

            g[e] = slope(n, i, e) * w[e] + shift(n, i, e);
            if (v->list[i].trainable)
                continue;
            m->before[at] = w[e];
            m->after[at] = bn_decay * w[e] + (1 - bn_decay) * shift(n, i, e);
        }
        if (v->list[i].trainable)
            PM_TRY(pm_buffer_write(v->device, v->grads, offset, g, count * sizeof *g));
    }
out:
    return err;
}

static int draw(struct pm_replica_call *call, struct pm_tally_answer *answer)
{
    const struct pm_tally_word word = { 0 };

    pm_replica_call_start(call, PM_ASK_NUMBER, &word, sizeof word);
    return pm_replica_call_wait(call, answer, sizeof *answer, NULL, NULL);
}

static int tell(struct pm_replica_call *call, enum pm_ask what, uint64_t staleness)
{
    const struct pm_tally_word word = { .staleness = staleness };
    struct pm_tally_answer answer;

    pm_replica_call_start(call, (unsigned)what, &word, sizeof word);
    return pm_replica_call_wait(call, &answer, sizeof answer, NULL, NULL);
}

static int train(const struct pm_host_copy *h, struct pm_plan *plan, struct pm_moving *moving,
                 struct pm_remote *remote, struct pm_servers_link *link,
                 struct pm_replica_call *call)
{
    struct pm_tally_answer answer;
    struct pm_step s;
    int err = PM_OK;

    for (;;) {
        PM_TRY(draw(call, &answer));
        if (answer.none)
            break;
        s = step_of(answer.number);
        PM_TRY(make_gradient(h, moving, answer.number));
        PM_TRY(pm_plan_submit(plan, 0));
        PM_TRY(pm_plan_wait(plan, 0));
        PM_TRY(pm_remote_push(remote, plan, moving, &s));
        PM_TRY(tell(call, PM_ASK_DONE, link->staleness));
    }
    PM_TRY(tell(call, PM_ASK_FINISHED, 0));
out:
    return err;
}

static int no_signal(void)
{
    return 0;
}

/* Worker 2 waits until step 5, and then sends a gradient of step 0. */
static int wait_for_others(struct pm_replica_call *call)
{
    const struct pm_tally_word word = { 0 };
    struct pm_tally_answer answer = { 0 };
    int err = PM_OK;

    while (answer.count < 5) {
        usleep(1000);
        pm_replica_call_start(call, PM_ASK_COUNT, &word, sizeof word);
        PM_TRY(pm_replica_call_wait(call, &answer, sizeof answer, NULL, NULL));
    }
out:
    return err;
}

static int train_backed(const struct pm_host_copy *h, struct pm_plan *plan,
                        struct pm_moving *moving, struct pm_remote *remote,
                        struct pm_servers_link *link, int rank)
{
    struct pm_step s;
    int err = PM_OK;

    if (rank == 2)
        PM_TRY(wait_for_others(link->tally));
    while (link->step < (rank == 2 ? 1 : STEPS)) {
        if (rank == 0) {
            pm_replica_call_start(link->tally, PM_ASK_GO, NULL, 0);
            PM_TRY(pm_replica_call_wait(link->tally, NULL, 0, NULL, NULL));
        }
        s = step_of(link->step);
        PM_TRY(make_gradient(h, moving, 2 * link->step + (uint64_t)rank));
        PM_TRY(pm_plan_submit(plan, 0));
        PM_TRY(pm_plan_wait(plan, 0));
        PM_TRY(pm_remote_push_backed(remote, plan, moving, &s));
    }
    PM_TRY(tell(link->tally, PM_ASK_FINISHED, 0));
out:
    return err;
}

static bool all_finished(void *serving, int *rank)
{
    struct pm_tally_view v;

    pm_serving_view(serving, false, &v);
    *rank = v.running;
    return v.running < 0;
}

/* Copies the collected state. */
static int keep_state(struct setup *s, struct pm_variables *v)
{
    struct pm_buffer *const blocks[] = { v->values, v->slots[0], v->slots[1], v->averages };
    int err = PM_OK;

    list_names(v, &s->names);
    for (int b = 0; b < 4; b++)
        for (int i = 0; blocks[b] && i < v->count; i++)
            if (v->list[i].trainable || b == 0 || b == 3)
                PM_TRY(pm_buffer_read(v->device, blocks[b], v->offset[i],
                                      s->state[b] + s->names.list[i].place,
                                      s->names.list[i].count * sizeof(float)));
out:
    return err;
}

/* Staleness of the order 0, 1, 1, 0: worker 0 pushes twice in sequence from one round to the next,
 * and so does worker 1 within a round; so every second push has missed two updates. The first push
 * of worker 0 has missed none, that of worker 1 one. */
static bool right_tally(struct pm_serving *serving)
{
    struct pm_tally_view v;

    pm_serving_view(serving, true, &v);
    return v.count == STEPS && v.stalest == 2 &&
           fabs(v.staleness * STEPS - (STEPS / 2 * 2 - 1)) < 1e-9;
}

/* Only the late gradient was dropped. */
static bool right_drops(struct pm_serving *serving)
{
    const uint64_t *dropped = pm_serving_dropped(serving);
    struct pm_tally_view v;

    pm_serving_view(serving, false, &v);
    return v.count == STEPS && dropped[0] == 0 && dropped[1] == 0 && dropped[2] == 1;
}

static void async_body(struct place *p)
{
    struct setup *s = (struct setup *)p->ctx;
    const int ranks = pm_replicas_count(p->r), workers = ranks - s->servers;
    struct pm_servers_link link = { .begun = true, .backups = s->backed ? 2 : 0,
                                    .signal = no_signal, .ranks = {
        .workers = workers, .owners = s->servers ? s->servers : workers,
        .first_owner = s->servers ? workers : 0 } };
    struct pm_arena *arena = pm_arena_create();
    struct pm_clones_options options;
    struct pm_host_copy h = { 0 };
    struct pm_moving moving = { 0 };
    struct pm_owner *owner = NULL;
    struct pm_serving *serving = NULL;
    struct pm_remote *remote = NULL;
    struct pm_replica_call *call = NULL;
    struct pm_plan *plan = NULL;
    int err = PM_OK;

    link.inbox = pm_replica_inbox_create(p->r, p->rank == 0 ? ranks : workers);
    link.tally = call = pm_replica_call_create(link.inbox, 0, PM_LINE_TRAINER);
    make_options(s, pm_arena_alloc(arena, 256), arena, &options);
    if (p->rank >= link.ranks.first_owner) {
        PM_TRY(pm_owner_create(&options, p->rank - link.ranks.first_owner, link.ranks.owners,
                               &owner));
        PM_TRY(set_first(pm_owner_variables(owner)));
    }
    PM_TRY(pm_serving_start(&(struct pm_serving_options){
        .ranks = link.ranks, .inbox = link.inbox, .owner = owner, .limit = STEPS,
        .backups = link.backups, .order = s->backed ? NULL : order_text }, &serving));
    p->right = true;
    if (p->rank < workers) {
        PM_TRY(pm_host_copy_open(&options, "worker", &h));
        PM_TRY(set_first(h.variables));
        PM_TRY(pm_host_copy_plan(&h, &options, pm_update_prepare_append, &options.update, &plan));
        pm_moving_create(h.net, h.variables, 1, &moving);
        moving.clones = 1;
        remote = pm_remote_create(&link, h.variables);
        err = s->backed ? train_backed(&h, plan, &moving, remote, &link, p->rank)
                        : train(&h, plan, &moving, remote, &link, call);
        moving.clones = 0; /* it has no program */
        PM_TRY(err);
    }
    if (p->rank == 0) {
        PM_TRY(pm_replicas_until(p->r, all_finished, serving));
        PM_TRY(pm_remote_collect(remote));
        PM_TRY(keep_state(s, h.variables));
        p->right = s->backed ? right_drops(serving) : right_tally(serving);
    }
    PM_TRY(pm_replica_inbox_end(link.inbox));
out:
    pm_serving_destroy(&serving);
    pm_remote_destroy(&remote);
    pm_replica_call_destroy(&call);
    pm_replica_inbox_destroy(&link.inbox);
    pm_owner_destroy(&owner);
    pm_moving_free(&moving);
    pm_plan_destroy(&plan);
    pm_host_copy_close(&h);
    pm_arena_destroy(&arena);
    p->err = err;
}

/* ---- tests ------------------------------------------------------------------------------- */

static void run_async(struct setup *s, int ranks, int late)
{
    struct wires *w = wires_create(ranks, late);
    struct place p[WIRE_RANKS];

    run_places(w, p, async_body, s);
    for (int i = 0; i < ranks; i++) {
        if (p[i].err < 0)
            fail_msg("rank %d: %s", p[i].rank, p[i].text);
        assert_true(p[i].right);
    }
    wires_destroy(&w);
}

/* Values differ by at most 1e-6 of the variable's largest. */
static void compare(const struct named *k, const char *what, const float *is, const double *should)
{
    double largest = 0;

    for (size_t e = 0; e < k->count; e++)
        largest = fmax(largest, fabs(should[k->place + e]));
    for (size_t e = 0; e < k->count; e++)
        if (!(fabs((double)is[k->place + e] - should[k->place + e]) <= 1e-6 * largest))
            fail_msg("%s of %s[%zu]: %.9g, but the reference has %.9g", what, k->name, e,
                     (double)is[k->place + e], should[k->place + e]);
}

static void check_state(const struct setup *s)
{
    struct model m;

    if (s->backed)
        reference_backed(&s->names, s->adam, &m);
    else
        reference(&s->names, s->adam, &m, STEPS);
    for (int i = 0; i < s->names.count; i++) {
        const struct named *k = &s->names.list[i];

        compare(k, "value", s->state[0], m.value);
        compare(k, "average", s->state[3], m.average);
        for (int b = 0; k->trainable && b < (s->adam ? 2 : 1); b++)
            compare(k, "slot", s->state[1 + b], m.slot[b]);
    }
}

static void updates_are_those_of_the_reference(void **state)
{
    static const struct { int ranks, servers, late; } layouts[] = {
        { 2, 0, 0 }, { 2, 0, 20 }, { 3, 1, 5 }, { 4, 2, 0 }, { 8, 6, 3 },
    };

    (void)state;
    for (int adam = 0; adam < 2; adam++) {
        struct setup first = { .adam = adam };

        for (size_t i = 0; i < PM_COUNT(layouts); i++) {
            struct setup s = { .adam = adam, .servers = layouts[i].servers };

            run_async(&s, layouts[i].ranks, layouts[i].late);
            check_state(&s);
            if (i == 0)
                first = s;
            assert_memory_equal(s.state, first.state, sizeof s.state);
        }
    }
}

static void late_gradients_are_dropped(void **state)
{
    static const struct { int ranks, servers, late; } layouts[] = { { 3, 0, 0 }, { 5, 2, 8 } };

    (void)state;
    for (int adam = 0; adam < 2; adam++)
        for (size_t i = 0; i < PM_COUNT(layouts); i++) {
            struct setup s = { .adam = adam, .backed = true, .servers = layouts[i].servers };

            run_async(&s, layouts[i].ranks, layouts[i].late);
            check_state(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_those_of_the_reference),
        cmocka_unit_test(late_gradients_are_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
