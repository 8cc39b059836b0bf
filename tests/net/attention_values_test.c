/* attention_decoder and attention_search on the CPU and every device: logits and gradients of
 * tests/golden/attention.json, which PyTorch computed in double precision; the number of
 * dispatches; searches against trying all words of up to 4 of 3 letters, and beams that tie. */
#include "device/every_device.h"
#include "loss_runs.h"
#include "refused_layers.h"

enum { MOST = 8192, VARIABLES = 7 };
static const char *const variable[VARIABLES] = {
    "memory_layer/kernel", "query_layer/kernel", "attention_v", "lstm_cell/kernel",
    "lstm_cell/bias", "dense/kernel", "dense/bias",
};

/* A decoder on n sequences, and its labels. */
struct scene {
    int n, t, c, attention, units, classes, steps;
    float x[MOST], var[VARIABLES][MOST];
    int32_t labels[MOST];
};

static size_t count_of(const struct scene *s, int k)
{
    const int count[VARIABLES] = {
        s->c * s->attention, s->units * s->attention, s->attention,
        (s->classes + s->c + s->units) * 4 * s->units, 4 * s->units, s->units * s->classes,
        s->classes,
    };

    return (size_t)count[k];
}

static void draw(uint32_t *seed, size_t count, float scale, float shift, float *out)
{
    assert_true(count <= MOST);
    for (size_t i = 0; i < count; i++)
        out[i] = (float)number(seed, 1 << 15) * scale - shift;
}

static void draw_scene(struct scene *s, uint32_t seed)
{
    for (int k = 0; k < VARIABLES; k++)
        draw(&seed, count_of(s, k), 0x1p-14f, 1, s->var[k]);
    draw(&seed, (size_t)(s->n * s->t * s->c), 0x1p-13f, 2, s->x);
}

/* ---- running --------------------------------------------------------------------------------- */

static const char *options_of(const struct scene *s, char text[128])
{
    snprintf(text, 128, "classes=%d units=%d attention_units=%d", s->classes, s->units,
             s->attention);
    return text;
}

/* The sequence is a parameter, which has a gradient. */
static struct pm_net *net_of(const struct scene *s)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *in[2], *loss[2];
    char text[128];

    in[1] = loss[1] = pm_net_input(net, "labels", PM_SHAPE2(s->n, s->steps), PM_I32);
    in[0] = pm_net_add(net, "x", in[1], "parameter shape=[%d,%d,%d]", s->n, s->t, s->c);
    loss[0] = pm_net_add_many(net, "decoder", in, 2, "attention_decoder %s", options_of(s, text));
    pm_net_add_many(net, "loss", loss, 2, "softmax_cross_entropy ignore_label=-1 normalize=top_k "
                    "weight=%d", s->steps);
    ok(net->error);
    return net;
}

static const char *name_of(const char *scope, int k, char text[64])
{
    snprintf(text, 64, "%s/%s", scope, variable[k]);
    return text;
}

static void write_variables(struct pm_variables *v, const struct scene *s, const char *scope)
{
    char text[64];

    for (int k = 0; k < VARIABLES; k++)
        write_variable(v, name_of(scope, k, text), s->var[k]);
}

struct result {
    float loss, logits[MOST], dx[MOST], d[VARIABLES][MOST];
};

static void train(struct pm_device *d, const struct scene *s, struct result *out)
{
    static const char *const outputs[] = { "decoder", NULL };
    struct run r = open_training(d, net_of(s), s->x, 1, outputs);
    char text[64];

    memset(out, 0, sizeof *out);
    write_variables(r.v, s, "decoder");
    memcpy(pm_plan_input(r.p, 0, "labels", 0), s->labels, 4 * (size_t)(s->n * s->steps));
    start(r.p);
    out->loss = (float)pm_plan_loss(r.p, 0);
    memcpy(out->logits, pm_plan_output(r.p, 0, "decoder", 0),
           4 * (size_t)(s->n * s->steps * s->classes));
    ok(pm_buffer_read(d, r.v->grads, r.v->offset[0], out->dx, 4 * (size_t)(s->n * s->t * s->c)));
    for (int k = 0; k < VARIABLES; k++)
        read_gradient(d, r.v, name_of("decoder", k, text), out->d[k], count_of(s, k));
    close_run(&r);
}

/* ---- goldens --------------------------------------------------------------------------------- */

static void open_scene(const cJSON *c, uint32_t seed, struct scene *s)
{
    const cJSON *row, *item;
    int count = 0;

    *s = (struct scene){ .t = integer(c, "t"), .c = integer(c, "channels"),
                         .attention = integer(c, "attention"), .units = integer(c, "units"),
                         .classes = integer(c, "classes") };
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(c, "labels")) {
        s->n++;
        cJSON_ArrayForEach(item, row)
            s->labels[count++] = item->valueint;
    }
    s->steps = count / s->n;
    draw_scene(s, seed);
}

/* A gate's sum has up to 12 products of at most 2, so 13 roundings of numbers of up to 20, and a
 * score of the attention as many: together a step has an error of 26 x 20 / 4 units of 2^-24. It
 * reaches the next step through a state whose slopes are below 1/2, so it at most doubles; a
 * gradient has the errors of both directions: 520 units. The limit, relative to the largest number,
 * is 2^10 units. */
static void compare(const struct pm_device *d, const cJSON *list, const char *name,
                    const float *got, size_t count)
{
    compare_golden(pm_device_get_info(d)->name, "attention", list, name, got, count, 0x1p-14);
}

static void goldens(struct pm_device *d)
{
    cJSON *all = read_golden("attention.json"), *c;
    static struct scene s;
    static struct result r;
    uint32_t seed = 1;

    cJSON_ArrayForEach(c, cJSON_GetObjectItem(all, "cases")) {
        const double loss = cJSON_GetObjectItem(c, "loss")->valuedouble;

        open_scene(c, seed++, &s);
        train(d, &s, &r);
        assert_float_equal(r.loss, loss, 0x1p-14 * loss);
        compare(d, cJSON_GetObjectItem(c, "logits"), "logit", r.logits,
                (size_t)(s.n * s.steps * s.classes));
        compare(d, cJSON_GetObjectItem(c, "dx"), "dx", r.dx, (size_t)(s.n * s.t * s.c));
        for (int k = 0; k < VARIABLES; k++)
            compare(d, cJSON_GetArrayItem(cJSON_GetObjectItem(c, "gradients"), k), variable[k],
                    r.d[k], count_of(&s, k));
    }
    assert_int_equal(seed, 1 + 4);
    cJSON_Delete(all);
}

static void same_bits(struct pm_device *d)
{
    static struct scene s = { .n = 3, .t = 4, .c = 3, .attention = 4, .units = 5, .classes = 6,
                              .steps = 4, .labels = { 2, 3, 1, -1, 1, -1, -1, -1, 5, 4, 3, 2 } };
    static struct result a, b;

    draw_scene(&s, 7);
    train(d, &s, &a);
    train(d, &s, &b);
    assert_true(a.loss > 0.1f);
    assert_memory_equal(&a, &b, sizeof a);
}

/* Two dispatches a step forward and three backward, at most; nothing waits for the host. */
static void dispatches(struct pm_device *d)
{
    enum { STEPS = 25, PRODUCTS = 40 }; /* those of all steps at once, with their parts */
    static struct scene s = { .n = 4, .t = 9, .c = 32, .attention = 16, .units = 24, .classes = 38,
                              .steps = STEPS };
    struct pm_net *net = net_of(&s);
    struct pm_variables *v = NULL;
    struct pm_plan *p = NULL;
    struct pm_counts counts;

    ok(pm_variables_create(d, net, true, NULL, &v));
    ok(pm_plan_create(net, d, v, &(struct pm_plan_options){
        .name = "train", .train = true, .slots = 1, .loss_share = 1, .micro_batches = 1 }, &p));
    ok(pm_plan_counts(p, &counts));
    if (pm_device_caps(d)->runs_shaders) {
        assert_true(counts.dispatches >= 5 * STEPS);
        assert_true(counts.dispatches <= 5 * STEPS + PRODUCTS);
    }
    pm_plan_destroy(&p);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
}

/* ---- searches -------------------------------------------------------------------------------- */

enum { LETTERS = 3, CLASSES = LETTERS + 2, STEPS = 4, WORDS = 1 + 3 + 9 + 27 + 81 };
enum { MOST_BEAMS = 16 };

struct found {
    int32_t symbols[MOST_BEAMS * STEPS], parents[MOST_BEAMS * STEPS];
    float totals[MOST_BEAMS * STEPS];
};

static void search(struct pm_device *d, const struct scene *s, int width, struct found *out)
{
    static const char *const outputs[] = { "search:1", "search:2", "search:4", NULL };
    const struct pm_plan_options o = { .name = "read", .slots = 1, .loss_share = 1,
                                       .micro_batches = 1, .outputs = outputs };
    const size_t bytes = 4 * (size_t)(width * STEPS);
    struct pm_net *net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "x", PM_SHAPE3(1, s->t, s->c), PM_F32);
    struct pm_variables *v = NULL;
    struct pm_plan *p = NULL;
    char text[128];

    pm_net_add(net, "search", x, "attention_search %s steps=%d beam_width=%d", options_of(s, text),
               STEPS, width);
    ok(net->error);
    ok(pm_variables_create(d, net, false, NULL, &v));
    ok(pm_variables_allocate(v));
    ok(pm_variables_init(v, 1, NULL));
    ok(pm_plan_create(net, d, v, &o, &p));
    ok(pm_plan_load(p));
    write_variables(v, s, "search");
    memcpy(pm_plan_input(p, 0, "x", 0), s->x, 4 * (size_t)(s->t * s->c));
    ok(pm_plan_submit(p, 0));
    ok(pm_plan_wait(p, 0));
    memcpy(out->symbols, pm_plan_output(p, 0, "search:1", 0), bytes);
    memcpy(out->parents, pm_plan_output(p, 0, "search:2", 0), bytes);
    memcpy(out->totals, pm_plan_output(p, 0, "search:4", 0), bytes);
    pm_plan_destroy(&p);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
}

/* Writes the labels of word number k: those of length 0, then of length 1, ... A word of 4 letters
 * has no room for its end. */
static void spell(int k, int32_t labels[STEPS])
{
    int length = 0, count = 1;

    for (; k >= count; count *= LETTERS, length++)
        k -= count;
    for (int i = 0; i < STEPS; i++)
        labels[i] = i == length ? 1 : -1;
    for (int i = length; i-- > 0; k /= LETTERS)
        labels[i] = 2 + k % LETTERS;
}

/* The logarithm of the probability of row i's labels. */
static double total_of(const struct scene *s, const float *logits, int i)
{
    double total = 0;

    for (int t = 0; t < STEPS; t++) {
        const int label = s->labels[i * STEPS + t];
        const float *z = logits + (i * STEPS + t) * s->classes;
        double sum = 0;

        for (int k = 0; k < s->classes; k++)
            sum += exp((double)z[k]);
        total += label < 0 ? 0 : z[label] - log(sum);
    }
    return total;
}

/* Labels of the beam that has the largest total at the end; returns the total. */
static double best_of(const struct found *f, int width, int32_t labels[STEPS])
{
    int beam = 0, ended = STEPS;
    double total;

    for (int w = 1; w < width; w++)
        if (f->totals[w * STEPS + STEPS - 1] > f->totals[beam * STEPS + STEPS - 1])
            beam = w;
    total = f->totals[beam * STEPS + STEPS - 1];
    for (int t = STEPS; t-- > 0;) {
        labels[t] = f->symbols[beam * STEPS + t];
        beam = f->parents[beam * STEPS + t];
        ended = labels[t] == 1 ? t : ended;
    }
    for (int t = ended + 1; t < STEPS; t++) {
        assert_int_equal(labels[t], 1); /* an end follows an end */
        labels[t] = -1;
    }
    return total;
}

/* A net of one sequence, the same in WORDS rows, each with the labels of another word. */
static void open_words(struct scene *s, uint32_t seed)
{
    *s = (struct scene){ .n = 1, .t = 5, .c = 3, .attention = 4, .units = 5, .classes = CLASSES,
                         .steps = STEPS };
    draw_scene(s, seed);
    for (size_t i = 0; i < count_of(s, 5); i++)
        s->var[5][i] *= 4; /* some words are much more probable than others */
    s->n = WORDS;
    for (int i = 0; i < WORDS; i++) {
        memcpy(s->x + i * s->t * s->c, s->x, 4 * (size_t)(s->t * s->c));
        spell(i, s->labels + i * STEPS);
    }
}

/* A beam's total is the word's probability in the decoder, for any width; with 16 beams no word is
 * more probable than the best, and the searches find the same word on every run. */
static void all_words(struct pm_device *d)
{
    static const int widths[] = { 1, 2, 5, MOST_BEAMS };
    static struct scene s;
    static struct result r;
    static struct found f;

    for (uint32_t seed = 1; seed <= 6; seed++) {
        double best = -INFINITY, last = -INFINITY;

        open_words(&s, seed);
        train(d, &s, &r);
        for (int i = 0; i < WORDS; i++)
            best = fmax(best, total_of(&s, r.logits, i));
        for (size_t k = 0; k < PM_COUNT(widths); k++) {
            int32_t labels[STEPS];
            int i = 0;

            search(d, &s, widths[k], &f);
            last = best_of(&f, widths[k], labels);
            while (i < WORDS && memcmp(labels, s.labels + i * STEPS, sizeof labels) != 0)
                i++;
            assert_true(i < WORDS);
            assert_float_equal(last, total_of(&s, r.logits, i), 1e-4);
        }
        assert_float_equal(last, best, 1e-4);
    }
}

/* All classes are equally probable, so every total of a step ties: the beams are those of the lower
 * beam and class. The start is never chosen. */
static void ties(struct pm_device *d)
{
    static const int32_t symbols[] = { 1, 1, 1, 1, 2, 1, 1, 1, 3, 2, 1, 1 };
    static const int32_t parents[] = { 0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 2, 2 };
    static struct scene s;
    static struct found f;

    open_words(&s, 1);
    memset(s.var[5], 0, sizeof s.var[5]);
    memset(s.var[6], 0, sizeof s.var[6]);
    search(d, &s, 3, &f);
    assert_memory_equal(f.symbols, symbols, sizeof symbols);
    assert_memory_equal(f.parents, parents, sizeof parents);
    assert_float_equal(f.totals[STEPS - 1], -log(CLASSES), 1e-6);
    assert_float_equal(f.totals[2 * STEPS - 1], -2 * log(CLASSES), 1e-6);
}

/* The number of threads changes no bit of a training step or of a search. */
static void threads(void **state)
{
    static const int counts[] = { 1, 3 };
    static struct scene s = { .n = 24, .t = 9, .c = 8, .attention = 16, .units = 24, .classes = 5,
                              .steps = 4 };
    static struct result r[PM_COUNT(counts)];
    static struct found f[PM_COUNT(counts)];

    (void)state;
    draw_scene(&s, 7);
    for (int i = 0; i < s.n * s.steps; i++)
        s.labels[i] = i % 4 < i / 4 % 5 ? 1 + i % 3 : -1;
    for (size_t i = 0; i < PM_COUNT(counts); i++) {
        struct pm_device *d = cpu_with(counts[i]);

        train(d, &s, &r[i]);
        search(d, &s, MOST_BEAMS, &f[i]);
        pm_device_close(&d);
    }
    assert_true(r[0].loss > 0.1f && f[0].totals[STEPS - 1] < 0);
    assert_memory_equal(&r[0], &r[1], sizeof r[0]);
    assert_memory_equal(&f[0], &f[1], sizeof f[0]);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refusals(void **state)
{
    enum { MEMORY_INPUT, LABELS_INPUT };
    static const struct layer decoder = { "attention_decoder", "memory and labels", 2,
                                          { S3(2, 9, 5), S2(2, 4) }, { PM_F32, PM_I32 } };
    static const struct layer searcher = { "attention_search", "memory and labels", 1,
                                           { S3(2, 9, 5) }, { PM_F32 } };
    static const struct wrong list[] = {
        { MEMORY_INPUT, S4(2, 3, 9, 5), "", "the input has shape 2x3x9x5 instead of n x t x c" },
        { MEMORY_INPUT, S3(2, 1025, 5), "", "with t of 1..1024" },
        { LABELS_INPUT, S2(3, 4), "", "labels have shape 3x4 instead of 2 x steps" },
        { LABELS_INPUT, S1(2), "", "labels have shape 2 instead of" },
        { LABELS_INPUT, S2(2, 4), "attention_units=1025", "attention_units: 1025 is outside "
                                                          "1..1024" },
        { LABELS_INPUT, S2(2, 4), "classes=2", "classes: 2 is outside 3..1048576" },
        { LABELS_INPUT, S2(2, 100000), "units=4096", "need more than 2^31 - 1 numbers" },
    };
    static const struct wrong searches[] = {
        { MEMORY_INPUT, S3(2, 9, 5), "beam_width=17", "beam_width: 17 is outside 1..16" },
        { MEMORY_INPUT, S3(2, 9, 5), "steps=0", "steps: 0 is outside 1..4096" },
    };

    (void)state;
    refuse(&decoder, list, PM_COUNT(list));
    refuse(&searcher, searches, PM_COUNT(searches));
}

ON_EVERY_DEVICE(goldens)
ON_EVERY_DEVICE(same_bits)
ON_EVERY_DEVICE(dispatches)
ON_EVERY_DEVICE(all_words)
ON_EVERY_DEVICE(ties)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens), cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_dispatches), cmocka_unit_test(test_all_words),
        cmocka_unit_test(test_ties), cmocka_unit_test(threads),
        cmocka_unit_test(refusals),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
