// A C++ program that uses the library through every public header: it lists devices, reads a
// config, builds a net and plans its training on the CPU. It links only if the headers give their
// functions C linkage.
#include <pumice/base.h>
#include <pumice/checkpoint.h>
#include <pumice/config.h>
#include <pumice/data.h>
#include <pumice/device.h>
#include <pumice/draw.h>
#include <pumice/export.h>
#include <pumice/formats.h>
#include <pumice/import.h>
#include <pumice/kernel.h>
#include <pumice/layer.h>
#include <pumice/measure.h>
#include <pumice/names.h>
#include <pumice/net.h>
#include <pumice/objects.h>
#include <pumice/onnx.h>
#include <pumice/options.h>
#include <pumice/plan.h>
#include <pumice/progress.h>
#include <pumice/replicas.h>
#include <pumice/report.h>
#include <pumice/rng.h>
#include <pumice/sample.h>
#include <pumice/task.h>
#include <pumice/tensor_file.h>
#include <pumice/thread.h>
#include <pumice/trace.h>
#include <pumice/train.h>
#include <pumice/verify.h>

#include <cjson/cJSON.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static void check(bool right, const char *what)
{
    if (right)
        return;
    std::fprintf(stderr, "cplusplus_test: %s; last error: %s\n", what, pm_error_text());
    std::exit(1);
}

static void use_devices()
{
    pm_device_info *list = nullptr;
    size_t count = 0, index = 0;

    check(pm_device_list(&list, &count) == PM_OK && count >= 1, "there is no device");
    check(pm_device_find(list, count, "cpu", "cplusplus_test", &index) == PM_OK, "there is no CPU");
    check(list[index].caps.threads >= 1, "the CPU has no thread");
    pm_free(list);
}

// The parameters of LeNet for 10 classes, as README and the golden files have them.
static void use_config(const pm_open_sections &choices)
{
    static const char text[] =
        "{\"model\": {\"name\": \"lenet\", \"num_classes\": 10}, \"run\": {\"batch_size\": 2},"
        " \"input\": {\"size\": 28, \"channels\": 1}, \"devices\": [\"cpu\"]}";
    pm_config *config = nullptr;
    cJSON *layers = nullptr, *clones = cJSON_CreateArray();
    int64_t parameters = 0;

    check(pm_config_parse("cplusplus.json", "{\"run\": {\"stepz\": 1}}", nullptr, 0, &choices,
                          &config) == PM_ECONFIG, "a wrong key was accepted");
    check(std::strstr(pm_error_text(), "run.stepz") != nullptr,
          "the message does not name the key");
    check(pm_config_parse("cplusplus.json", text, nullptr, 0, &choices, &config) == PM_OK,
          "the config was refused");
    check(config->run.batch_size == 2 && config->exporting.batch_size == 0,
          "wrong values were read");
    check(pm_show_layers(config, &layers, &parameters) == PM_OK, "the net was not built");
    std::printf("lenet: %lld parameters\n", static_cast<long long>(parameters));
    check(parameters == 3274634, "LeNet has 3274634 parameters");
    check(pm_show_plan(config, nullptr, false, clones) == PM_OK, "the plan was not made");
    check(cJSON_GetArraySize(clones) == 1, "the plan is not of one clone");
    cJSON_Delete(layers);
    cJSON_Delete(clones);
    pm_config_destroy(&config);
    check(config == nullptr, "the config was not destroyed");
}

int main()
{
    pm_arena *arena = pm_arena_create();
    pm_rng rng = pm_rng_make(1, pm_hash("cplusplus"), 0, 0);
    const double u = pm_rng_uniform(&rng);

    check(u >= 0 && u < 1, "a uniform number is outside 0..1");
    use_devices();
    use_config(pm_train_choices(arena));
    pm_arena_destroy(&arena);
    return 0;
}
