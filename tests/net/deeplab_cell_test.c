/* The dense prediction cell: the layers of its branches, and cells that are refused. */
#include "deeplab_small.h"

#include <unistd.h>

static char *cell_file(const char *text)
{
    char *path = pm_strdup("/tmp/pumice-cell-XXXXXX");
    const int file = mkstemp(path);
    char *options;

    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    options = pm_malloc(strlen(path) + 64);
    snprintf(options, strlen(path) + 64, "{\"dense_prediction_cell\": \"%s\"", path);
    pm_free(path);
    return options;
}

static void remove_cell(char *options)
{
    char *path = strstr(options, "/tmp/");

    *strrchr(path, '"') = 0;
    unlink(path);
    pm_free(options);
}

static void cell(void **state)
{
    (void)state;
    char *options =
        cell_file("[{\"kernel\": 3, \"rate\": [1, 6], \"op\": \"conv\", \"input\": -1},"
                  " {\"kernel\": [1, 1], \"op\": \"conv\", \"input\": 0},"
                  " {\"grid_size\": [2, 4], \"op\": \"pyramid_pooling\", \"input\": 1}]");
    char *text = pm_malloc(strlen(options) + 32);
    struct pm_net *net;

    sprintf(text, "%s, \"output_stride\": 8}", options);
    net = built(text, 65, 129);
    expect_text(net, "meta_architecture/branch0_depthwise", "dilation", "[2,12]");
    expect_text(net, "meta_architecture/branch2/average", "kernel", "[5,5]");
    expect_shape(net, "meta_architecture/branch2", PM_SHAPE4(2, 5, 13, 256));
    expect_shape(net, "meta_architecture/joined", PM_SHAPE4(2, 9, 17, 3 * 256));
    assert_string_equal(pm_net_find(net, "meta_architecture/branch1")->in[0]->name,
                        "meta_architecture/branch0_pointwise/BatchNorm");
    assert_string_equal(pm_net_find(net, "meta_architecture/concat_projection")->in[0]->name,
                        "meta_architecture/concat_projection_dropout");
    assert_null(pm_net_find(net, "aspp0"));
    pm_net_destroy(&net);
    pm_free(text);
    remove_cell(options);
}

static void refused_cells(void **state)
{
    (void)state;
    static const struct { const char *text, *words;
    } cases[] = {
        { "{}", "a cell is a list of 1 to 8 branches" },
        { "[]", "a cell is a list of 1 to 8 branches" },
        { "[1]", "[0].op: must be \"conv\" or \"pyramid_pooling\"" },
        { "[{\"op\": \"conv\", \"input\": 0, \"kernel\": 1}]", "[0].input: must be -1" },
        { "[{\"op\": \"conv\", \"input\": -1, \"kernel\": 1},"
          " {\"op\": \"conv\", \"input\": 0, \"kernel\": 3}]",
          "[1].rate: must be a whole number" },
        { "[{\"op\": \"conv\", \"input\": -1, \"kernel\": [3, 0.5], \"rate\": 1}]",
          "[0].kernel: must" },
        { "[{\"op\": \"conv\", \"input\": -1, \"kernel\": 1, \"size\": 1}]",
          "[0].size: is no key" },
        { "[{\"op\": \"pyramid_pooling\", \"input\": -1}]", "[0].grid_size: must" },
        { "[", ":1:" },
    };

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        char *options = cell_file(cases[i].text), *text = pm_malloc(strlen(options) + 2);

        sprintf(text, "%s}", options);
        expect_error(text, cases[i].words);
        pm_free(text);
        remove_cell(options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(cell), cmocka_unit_test(refused_cells) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
