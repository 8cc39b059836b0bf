/* No shader has code for an absent buffer. For every kernel call of the layers' test cases, and
 * every buffer that its row marks with "?", the test freezes the shaders as if the buffer were
 * absent (shaders/lib/presence.glsl). Then it follows the branches, whose conditions are constants,
 * and looks for accesses to the buffer's member of the push block. */
#include "device/drivers.h"

#include "layers/check_run.h"
#include "optional.spv.h"

#define PM_LAYER(name) extern const struct pm_layer_test pm_test_##name;
#include "layers/layers.def"
#undef PM_LAYER

static const struct entry entries[] = {
#define PM_LAYER(name) { #name, &pm_test_##name },
#include "layers/layers.def"
#undef PM_LAYER
};

/* ---- reading a module ------------------------------------------------------------------- */

/* From the SPIR-V specification; only the values used here. */
enum {
    OP_ENTRY_POINT = 15, OP_TRUE = 41, OP_FALSE = 42, OP_CONSTANT = 43, OP_FUNCTION = 54,
    OP_CALL = 57, OP_VARIABLE = 59, OP_ACCESS_CHAIN = 65, OP_IN_BOUNDS_CHAIN = 66, OP_OR = 166,
    OP_AND = 167, OP_NOT = 168, OP_PHI = 245, OP_LABEL = 248, OP_BRANCH = 249,
    OP_BRANCH_CONDITIONAL = 250, OP_SWITCH = 251,
    HEADER = 5, CLASS_PUSH = 9,
};
enum { MOST_IDS = 4096, MOST_EDGES = 4096 };

/* What a walk from main() along the branches that can be taken has found. */
struct walk {
    const uint32_t *words;
    size_t count;
    uint32_t push;                 /* id of the push block */
    uint32_t members;              /* bit i: member i of the push block is read */
    bool known[MOST_IDS];          /* the id is a constant, or takes a constant value */
    uint32_t value[MOST_IDS];
    bool live[MOST_IDS];           /* labels and functions that can be reached */
    uint32_t edge[MOST_EDGES][2];  /* branches that can be taken: from label, to label */
    size_t edges;
};

static void set(struct walk *k, uint32_t id, uint32_t value)
{
    k->known[id] = true;
    k->value[id] = value;
}

static void take(struct walk *k, uint32_t from, uint32_t to)
{
    assert_true(k->edges < MOST_EDGES);
    k->edge[k->edges][0] = from;
    k->edge[k->edges++][1] = to;
    k->live[to] = true;
}

static bool taken(const struct walk *k, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < k->edges; i++)
        if (k->edge[i][0] == from && k->edge[i][1] == to)
            return true;
    return false;
}

/* A phi is known if all branches that lead to it bring the same constant. */
static void read_phi(struct walk *k, const uint32_t *w, uint32_t label)
{
    bool known = true, any = false;
    uint32_t value = 0;

    for (size_t i = 3; i + 1 < w[0] >> 16; i += 2) {
        if (!taken(k, w[i + 1], label))
            continue;
        known &= k->known[w[i]] && (!any || k->value[w[i]] == value);
        value = k->value[w[i]];
        any = true;
    }
    if (any && known)
        set(k, w[2], value);
}

static void read_logic(struct walk *k, const uint32_t *w)
{
    const uint32_t op = w[0] & 0xffff, dominant = op == OP_OR;

    if (op == OP_NOT) {
        if (k->known[w[3]])
            set(k, w[2], !k->value[w[3]]);
        return;
    }
    for (int i = 3; i < 5; i++)
        if (k->known[w[i]] && k->value[w[i]] == dominant)
            set(k, w[2], dominant);
    if (k->known[w[3]] && k->known[w[4]])
        set(k, w[2], op == OP_OR ? k->value[w[3]] | k->value[w[4]]
                                 : k->value[w[3]] & k->value[w[4]]);
}

static void read_branch(struct walk *k, const uint32_t *w, uint32_t label)
{
    switch (w[0] & 0xffff) {
    case OP_BRANCH:
        take(k, label, w[1]);
        break;
    case OP_BRANCH_CONDITIONAL:
        if (!k->known[w[1]] || k->value[w[1]])
            take(k, label, w[2]);
        if (!k->known[w[1]] || !k->value[w[1]])
            take(k, label, w[3]);
        break;
    default: /* OP_SWITCH */
        take(k, label, w[2]);
        for (size_t i = 4; i < w[0] >> 16; i += 2)
            take(k, label, w[i]);
        break;
    }
}

/* Reads an instruction of a block that can be reached. */
static void read_one(struct walk *k, const uint32_t *w, uint32_t label)
{
    switch (w[0] & 0xffff) {
    case OP_CALL:
        k->live[w[3]] = true;
        break;
    case OP_ACCESS_CHAIN:
    case OP_IN_BOUNDS_CHAIN:
        if (w[3] == k->push) {
            assert_true(k->known[w[4]]);
            k->members |= 1u << k->value[w[4]];
        }
        break;
    case OP_PHI:
        read_phi(k, w, label);
        break;
    case OP_OR:
    case OP_AND:
    case OP_NOT:
        read_logic(k, w);
        break;
    case OP_BRANCH:
    case OP_BRANCH_CONDITIONAL:
    case OP_SWITCH:
        read_branch(k, w, label);
        break;
    default:
        break;
    }
}

/* Reads constants, and all functions that are known to be called. Returns the number of
 * instructions that can be reached. */
static size_t read_all(struct walk *k)
{
    uint32_t label = 0, function = 0;
    size_t reached = 0;
    bool live = false;

    k->edges = 0;
    for (size_t i = HEADER; i < k->count; i += k->words[i] >> 16) {
        const uint32_t *w = k->words + i;

        switch (w[0] & 0xffff) {
        case OP_ENTRY_POINT:
            k->live[w[2]] = true;
            break;
        case OP_TRUE:
        case OP_FALSE:
            set(k, w[2], (w[0] & 0xffff) == OP_TRUE);
            break;
        case OP_CONSTANT:
            set(k, w[2], w[3]);
            break;
        case OP_VARIABLE:
            if (w[3] == CLASS_PUSH)
                k->push = w[2];
            break;
        case OP_FUNCTION:
            function = w[2];
            label = 0;
            break;
        case OP_LABEL:
            k->live[w[1]] |= label == 0 && k->live[function]; /* a function's first block */
            label = w[1];
            live = k->live[label];
            break;
        default:
            if (label && live) {
                read_one(k, w, label);
                reached++;
            }
            break;
        }
    }
    return reached;
}

/* Returns the members of the push block that a frozen module can read. */
static uint32_t members_read(const uint32_t *words, size_t count)
{
    static struct walk k;
    size_t before = 0, reached;

    memset(&k, 0, sizeof k);
    k.words = words;
    k.count = count;
    assert_true(words[3] <= MOST_IDS);
    while ((reached = read_all(&k)) > before) /* a function may come before its callers */
        before = reached;
    return k.members;
}

/* ---- the rows' shaders ------------------------------------------------------------------- */

struct totals {
    size_t checked, read; /* pairs of a shader and a buffer; those where the shader reads it */
};

static uint32_t read_with(const struct pm_dispatch *d, uint32_t present, bool *declared)
{
    static const struct pm_shader optional = { "optional", spv_optional, sizeof spv_optional };
    const struct pm_shader *s =
        strcmp(d->shader, optional.name) == 0 ? &optional : shader_named(d->shader);
    struct pm_module_info info;
    uint32_t *words = NULL, members;
    size_t count = 0;

    ok(pm_spirv_freeze(s->words, s->bytes / 4, d->spec, d->specs, present, &words, &count, &info));
    assert_int_equal(info.reads_presence, pm_spirv_reads_presence(s->words, s->bytes / 4));
    *declared = info.reads_presence;
    members = members_read(words, count);
    pm_free(words);
    return members;
}

static void check_dispatch(const struct pm_kernel *kernel, const struct pm_dispatch *d,
                           struct totals *t)
{
    struct pm_buf_spec spec[PM_MAX_BUFS];
    const int bufs = pm_kernel_bufs(kernel, spec);
    bool declared;
    const uint32_t all = read_with(d, UINT32_MAX, &declared);

    for (int i = 0; i < bufs; i++) {
        if (!spec[i].optional)
            continue;
        t->checked++;
        if (!(all >> i & 1))
            continue;
        t->read++;
        if (!declared)
            fail_msg("%s: %s reads the optional buffer %s, but does not include "
                     "lib/presence.glsl", kernel->name, d->shader, spec[i].name);
        if (read_with(d, ~(1u << i), &declared) >> i & 1)
            fail_msg("%s: %s has code for buffer %d, %s, also when it is absent; put the access "
                     "inside a test of pm_has(%d)", kernel->name, d->shader, i, spec[i].name, i);
    }
}

static void check_call(const struct pm_planned_call *c, struct totals *t)
{
    static const struct pm_caps caps = {
        .runs_shaders = true, .last_group = true, .subgroup_size = 32,
        .max_workgroup_size = { 1024, 1024, 64 }, .max_workgroup_invocations = 1024,
        .max_groups = { 65535, 65535, 65535 }, .shared_bytes = 32768, .max_buffer_bytes = 1u << 31,
    };
    const struct pm_kernel *k = c->kernel;
    static struct pm_picks picks;

    if (!strchr(k->bufs, '?'))
        return;
    for (int level = 0; level < 32; level++) {
        if (k->pick ? !k->pick(&caps, c->params, c->count, level, &picks)
                    : level > 0 || !pm_pick_elements(k->shader ? k->shader : k->name, 64, c->count,
                                                     &picks))
            return;
        for (int i = 0; i < picks.count; i++)
            check_dispatch(k, &picks.d[i], t);
    }
}

static void test_rows(void **state)
{
    const struct build_options o = { .backward = true, .update = true, .flag = 1,
                                     .calls_only = true };
    struct totals t = { 0 };

    (void)state;
    for (size_t e = 0; e < PM_COUNT(entries); e++)
        for (const struct check_case *c = entries[e].test->cases; c->options; c++) {
            struct subject *s;

            ok(subject_build(&entries[e], c, &o, &s));
            for (int i = 0; i < s->calls.call_count; i++)
                check_call(&s->calls.calls[i], &t);
            subject_free(&s);
        }
    print_message("%zu pairs of a shader and an optional buffer, %zu of them read it\n", t.checked,
                  t.read);
    assert_true(t.read > 500);
}

/* ---- the walk itself --------------------------------------------------------------------- */

/* The walk finds what a shader reads: add_fwd reads all nine buffers, or, without its optional
 * ones, three. Its params are member 9. */
static void test_walk(void **state)
{
    const struct pm_dispatch d = { .shader = "add_fwd", .spec = { 64, 1, 1, 0 }, .specs = 4 };
    bool declared;

    (void)state;
    assert_int_equal(read_with(&d, UINT32_MAX, &declared), 0x3ff);
    assert_true(declared);
    assert_int_equal(read_with(&d, ~0xfcu, &declared), 0x303);
}

/* A shader that only tests a run-time value has code for the absent buffer. */
static void test_plain_branch(void **state)
{
    const struct pm_dispatch d = { .shader = "optional", .spec = { 64, 1, 1 }, .specs = 3 };
    bool declared;

    (void)state;
    assert_int_equal(read_with(&d, UINT32_MAX, &declared), 0x1f);
    assert_int_equal(read_with(&d, ~2u, &declared), 0x1d);
    assert_int_equal(read_with(&d, ~4u, &declared), 0x1f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_plain_branch),
        cmocka_unit_test(test_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
