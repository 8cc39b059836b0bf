/* pumice export: writes the trained net as an ONNX file. */
#include "app/app.h"

#include <pumice/train.h>

#include <cjson/cJSON.h>

static void add_values(struct pm_str *text, const cJSON *report, const char *key, const char *what)
{
    const cJSON *v, *dim;

    cJSON_ArrayForEach(v, cJSON_GetObjectItem(report, key))
    {
        const char *comma = "";

        pm_str_add(text, "  %s ", what);
        pm_str_name(text, cJSON_GetStringValue(cJSON_GetObjectItem(v, "name")), 0);
        pm_str_add(text, ": %s [", cJSON_GetStringValue(cJSON_GetObjectItem(v, "type")));
        cJSON_ArrayForEach(dim, cJSON_GetObjectItem(v, "shape"))
        {
            if (cJSON_IsString(dim))
                pm_str_add(text, "%s%s", comma, dim->valuestring);
            else
                pm_str_add(text, "%s%.0f", comma, dim->valuedouble);
            comma = ", ";
        }
        pm_str_add(text, "]\n");
    }
}

static double number(const cJSON *report, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(report, key));
}

static int print_text(const cJSON *report)
{
    const char *data = cJSON_GetStringValue(cJSON_GetObjectItem(report, "data"));
    const char *from = cJSON_GetStringValue(cJSON_GetObjectItem(report, "checkpoint"));
    const double labels = number(report, "labels");
    struct pm_str text = { 0 };
    char bytes[24];
    int err;

    pm_str_add(&text, "%s: %s, ONNX opset %.0f, %.0f operators, %.0f parameters\n",
               cJSON_GetStringValue(cJSON_GetObjectItem(report, "file")),
               pm_bytes_text((size_t)number(report, "bytes"), bytes), number(report, "opset"),
               number(report, "operators"), number(report, "parameters"));
    if (data)
        pm_str_add(&text, "%s: %s, its weights: keep both together\n", data,
                   pm_bytes_text((size_t)number(report, "data_bytes"), bytes));
    add_values(&text, report, "inputs", "input");
    add_values(&text, report, "outputs", "output");
    pm_str_add(&text, "  from %s%s", from ? from : "the net's initial values",
               cJSON_IsTrue(cJSON_GetObjectItem(report, "averages")) ? " (moving averages)" : "");
    if (cJSON_IsNumber(cJSON_GetObjectItem(report, "step")))
        pm_str_add(&text, ", step %.0f", number(report, "step"));
    pm_str_add(&text, "%s\n", labels > 0 ? "; class names are in the metadata" : "");
    if (cJSON_IsTrue(cJSON_GetObjectItem(report, "training")))
        pm_str_add(&text, "  in training mode: outputs depend on the batch and on random numbers, "
                          "so they were not compared\n");
    if (cJSON_GetObjectItem(report, "difference"))
        pm_str_add(&text,
                   "  read again and run on the CPU: differs by at most %.1e of the net's "
                   "largest output\n",
                   number(report, "difference"));
    err = app_print(text.text);
    pm_str_free(&text);
    return err;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    cJSON *report = cJSON_CreateObject();
    struct pm_config *c = NULL;
    struct app_args args;
    int err = PM_OK;

    PM_TRY(app_args(argc, argv, "export", a, &args));
    PM_TRY(app_load_config(&args, "export", 2, a, &c));
    PM_TRY(pm_export_onnx(c, args.words_count > 1 ? args.words[1] : NULL, report));
    PM_TRY(g->json ? app_print_json(g, report) : print_text(report));
out:
    pm_config_destroy(&c);
    cJSON_Delete(report);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_export = {
    .name = "export", .help = "writes the trained net as an ONNX file",
    .usage = "CONFIG.json|RUN [OUT.onnx] [key=value ...]",
    .details =
        "Writes an ONNX file, which needs neither pumice nor the config to run. The file is\n"
        "OUT.onnx, else export.file, else RUN/model.onnx. eval.checkpoint and eval.averages\n"
        "select the values, as for eval. No GPU is needed. The command reads the file again,\n"
        "runs it and the net on a sample on the CPU, and compares the outputs.\n"
        "\n"
        "  export.batch_size=8         a fixed number of pictures; by default any number\n"
        "  export.size=320             another input size; export.any_size=true: any size, if\n"
        "                              the net allows it\n"
        "  export.fold_batch_norm=true merges batch norm into convolutions: faster, not\n"
        "                              trainable\n"
        "  export.output=probabilities appends a softmax\n"
        "  export.preprocessing=fold   the input is uint8 pixels [n, height, width, channels]\n"
        "                              instead of normalised float32 [n, channels, height,\n"
        "                              width]\n"
        "  export.checkpoint=none      the architecture with initial values, without a checkpoint\n"
        "  export.training=true        as in training: batch norm of the batch, active dropout\n"
        "  export.output_stride=8      segmentation: computes finer maps\n"
        "  export.scales='[0.5,1]'     segmentation: averages over scales; export.flip=true: and\n"
        "                              over mirrored pictures\n"
        "  export.weights=beside       writes the weights to OUT.onnx-DIGEST.data; default above\n"
        "                              2 GB\n"
        "\n"
        "The file's metadata describe how a picture becomes the input (\"preprocessing\": mean,\n"
        "std, size, ...) and name the classes (\"labels\").\n"
        "\n"
        "  pumice export configs/shapes_classification.json shapes.onnx\n"
        "  pumice export runs/photos eval.checkpoint=best export.fold_batch_norm=true\n",
    .run = run,
};
