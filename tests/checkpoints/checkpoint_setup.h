/* Shared by the tests of checkpoints: a run folder that belongs to the test, states whose values
 * encode their step, and functions that look for them. */
#ifndef PUMICE_TESTS_CHECKPOINT_SETUP_H
#define PUMICE_TESTS_CHECKPOINT_SETUP_H

#include <pumice/checkpoint.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char base[64], run[128];

static inline int setup(void **state)
{
    (void)state;
    strcpy(base, "/tmp/pumice-checkpoint-XXXXXX");
    if (!mkdtemp(base))
        return -1;
    snprintf(run, sizeof run, "%s/run", base);
    return pm_make_folders(run);
}

static inline int teardown(void **state)
{
    (void)state;
    return pm_remove_tree(base);
}

static inline const char *file_of(const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/checkpoints/%s", run, name);
    return path;
}

static inline bool there(const char *name)
{
    return pm_file_exists(file_of(name));
}

enum { SIZE = 3 * 5 };

/* Saves a state in which every value is derived from its step. */
static inline int save_in(const char *folder, uint64_t step, struct pm_keep keep)
{
    float w[SIZE], m[SIZE], scalar = (float)step;
    char state[64];

    for (int i = 0; i < SIZE; i++) {
        w[i] = (float)step + (float)i / 16;
        m[i] = -w[i];
    }
    struct pm_state_tensor list[] = {
        { "net/w", PM_SHAPE2(3, 5), w },
        { "net/w/Momentum", PM_SHAPE2(3, 5), m },
        { "power", { 0 }, &scalar },
    };
    snprintf(state, sizeof state, "{\"config_hash\": \"abc\", \"data\": {\"epoch\": %d}}",
             (int)step);
    return pm_checkpoint_save(folder, step, list, 3, state, &keep);
}

static inline int save(uint64_t step, int newest)
{
    return save_in(run, step, (struct pm_keep){ .newest = newest });
}

static inline void assert_holds(struct pm_checkpoint *c, uint64_t step)
{
    float w[SIZE];
    char epoch[32];

    assert_non_null(c);
    assert_int_equal(c->step, step);
    assert_int_equal(pm_checkpoint_read(c, "net/w", PM_SHAPE2(3, 5), w), 0);
    for (int i = 0; i < SIZE; i++)
        assert_true(w[i] == (float)step + (float)i / 16);
    assert_int_equal(pm_checkpoint_read(c, "net/w/Momentum", PM_SHAPE2(3, 5), w), 0);
    assert_true(w[3] == -((float)step + 3.f / 16));
    snprintf(epoch, sizeof epoch, "\"epoch\": %d", (int)step);
    assert_non_null(strstr(c->state, epoch));
}

static inline void assert_newest(uint64_t step)
{
    struct pm_checkpoint *c = NULL;

    assert_int_equal(pm_checkpoint_open_newest(run, &c), 0);
    assert_holds(c, step);
    pm_checkpoint_close(&c);
    assert_null(c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
