/* pumice checkpoint convert: converts a checkpoint of any format to one that other programs
 * read. */
#include "app/checkpoint_command.h"
#include "formats/tensor_format.h"

#include <cjson/cJSON.h>
#include <string.h>

static int print_conversion(const struct pm_checkpoint *from, const char *dst,
                            const struct pm_converted *made, struct app_globals *g)
{
    cJSON *o;
    int err;

    PM_INFO("checkpoint", "%s (%s) to %s (%s): %zu %s, %zu left out", from->path,
            pm_tensor_file_format(from->tensors), dst, made->format, made->tensors,
            pm_plural((double)made->tensors, "tensor", "tensors"), made->left_out);
    if (made->texts)
        PM_WARN("checkpoint", "%zu of them are texts or other values that are not numbers",
                made->texts);
    if (!g->json)
        return PM_OK;
    o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "source", from->path);
    cJSON_AddStringToObject(o, "source_format", pm_tensor_file_format(from->tensors));
    cJSON_AddStringToObject(o, "path", dst);
    cJSON_AddStringToObject(o, "format", made->format);
    cJSON_AddNumberToObject(o, "step", (double)from->step);
    cJSON_AddNumberToObject(o, "tensors", (double)made->tensors);
    cJSON_AddNumberToObject(o, "left_out", (double)made->left_out);
    err = app_print_json(g, o);
    cJSON_Delete(o);
    return err;
}

int app_checkpoint_convert(const struct app_args *args, struct pm_arena *a, struct app_globals *g)
{
    int err = PM_OK;
    struct pm_checkpoint *from = NULL;
    struct pm_checkpoint_conversion o;
    struct pm_converted made;
    const char *options = NULL;

    if (args->words_count < 2)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: checkpoint convert needs SRC DST, as in pumice "
                                   "checkpoint convert runs/lenet_mnist lenet.safetensors"));
    PM_TRY(app_options(args, "checkpoint convert", 2, a, &options));
    PM_TRY(pm_opts_parse_text(pm_checkpoint_conversion_opts, options, &o, a, "checkpoint convert"));
    PM_TRY(pm_checkpoint_open(NULL, args->words[0], "checkpoint convert", &from));
    PM_TRY(pm_checkpoint_convert(from, args->words[1], &o, &made));
    PM_TRY(print_conversion(from, args->words[1], &made, g));
out:
    pm_checkpoint_close(&from);
    return err;
}

int app_checkpoint_help(int argc, char **argv, struct pm_str *text)
{
    size_t count;
    const struct pm_tensor_format *const *rows = pm_tensor_formats(&count);

    pm_str_add(text, "\nformats that are read:\n");
    for (size_t i = 0; i < count; i++)
        pm_str_add(text, "    %-26s%s\n", rows[i]->name, rows[i]->help);
    if (argc > 0 && strcmp(argv[0], "convert") == 0) {
        pm_str_add(text, "\noptions of convert:\n");
        app_add_options(text, pm_checkpoint_conversion_opts);
    }
    return PM_OK;
}
