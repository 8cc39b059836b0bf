/* tf_graph: TensorFlow's files that hold a graph, whose values, if any, are elsewhere: each is refused
 * with what to give instead. By their names, and after all other rows: other formats end in .pb too. */
#include "formats/tensor_file.h"

#include <string.h>

static bool is_graph(const struct pm_tensor_probe *p)
{
    return p->file && (pm_ends_with(p->path, ".meta") || pm_ends_with(p->path, ".pb") ||
                       pm_ends_with(p->path, ".pbtxt"));
}

static int refuse(const char *path, struct pm_tensor_file **out)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    (void)out;
    if (pm_ends_with(path, ".meta"))
        return pm_fail(PM_EDATA, "%s: a graph of TensorFlow's, without values: give the checkpoint beside "
                                 "it, %.*s", path, (int)(strlen(path) - 5), path);
    if (strcmp(name, "saved_model.pb") == 0 || strcmp(name, "saved_model.pbtxt") == 0)
        return pm_fail(PM_EDATA, "%s: the graph of a SavedModel, without values: give its folder, %.*s",
                       path, slash ? (int)(slash - path) : 1, slash ? path : ".");
    return pm_fail(PM_EDATA, "%s: a graph of TensorFlow's (a frozen one has its values inside), which is "
                             "not read: give the checkpoint it was made from, or turn it into ONNX with "
                             "tf2onnx", path);
}

const struct pm_tensor_format pm_format_tf_graph = {
    .name = "TensorFlow graph", .help = "refused, with what to give instead", .is = is_graph,
    .open = refuse,
};
