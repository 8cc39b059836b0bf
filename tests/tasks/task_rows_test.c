/* Every task has the functions that struct pm_task_row requires. A missing one would be a call of
 * NULL in a command that the task's own tests do not run. */
#include <pumice/task.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define REQUIRED(row, function)                                                                    \
    do {                                                                                           \
        if (!(row)->function)                                                                      \
            fail_msg("pm_task_%s: ." #function " is missing, and task.h does not allow NULL",      \
                     (row)->config.name);                                                          \
    } while (0)

static void required_functions(void **state)
{
    size_t count;
    const struct pm_task_row *const *rows = pm_tasks(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        const struct pm_task_row *row = rows[i];

        REQUIRED(row, config.metrics);
        REQUIRED(row, open);
        REQUIRED(row, close);
        REQUIRED(row, describe);
        REQUIRED(row, fields);
        REQUIRED(row, make);
        REQUIRED(row, picture);
        REQUIRED(row, check_heads);
        REQUIRED(row, add_loss);
        REQUIRED(row, metrics);
        REQUIRED(row, score_create);
        REQUIRED(row, score_destroy);
        REQUIRED(row, score_add);
        REQUIRED(row, score_pack);
        REQUIRED(row, score_merge);
        REQUIRED(row, score_report);
        REQUIRED(row, present);
        if (row->score_samples)
            REQUIRED(row, score_sample);
    }
}

static void found_by_name(void **state)
{
    size_t count;
    const struct pm_task_row *const *rows = pm_tasks(&count);

    (void)state;
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(pm_task_find(rows[i]->config.name), rows[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(required_functions),
        cmocka_unit_test(found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
