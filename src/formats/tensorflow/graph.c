/* tf_graph: TensorFlow's files that hold a graph, whose values, if any, are elsewhere: each is
 * refused with what to give instead. Told by their names and, since others use those endings too,
 * by how they begin: the first field of a graph and of a .meta is a message, with tag 0a (tensors
 * of ONNX begin with numbers), or its name in those written as text. */
#include "formats/tensor_format.h"

#include <string.h>

static bool begins(const struct pm_tensor_probe *p, const char *what)
{
    return p->head_size >= strlen(what) && memcmp(p->head, what, strlen(what)) == 0;
}

static bool is_graph(const struct pm_tensor_probe *p)
{
    const bool graph = begins(p, "\x0a") || begins(p, "meta_info_def {") || begins(p, "node {");

    return p->file &&
           ((graph && (pm_ends_with(p->path, ".meta") || pm_ends_with(p->path, ".pb") ||
                       pm_ends_with(p->path, ".pbtxt"))) ||
            pm_ends_with(p->path, "saved_model.pb") || pm_ends_with(p->path, "saved_model.pbtxt"));
}

static int refuse(const char *path, struct pm_tensor_file **out)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    (void)out;
    if (pm_ends_with(path, ".meta"))
        return pm_fail(PM_EDATA, "%s: a graph of TensorFlow's, without values: give the checkpoint "
                                 "beside it, %.*s", path, (int)(strlen(path) - 5), path);
    if (strcmp(name, "saved_model.pb") == 0 || strcmp(name, "saved_model.pbtxt") == 0)
        return pm_fail(PM_EDATA,
                       "%s: the graph of a SavedModel, without values: give its folder, %.*s", path,
                       slash ? (int)(slash - path) : 1, slash ? path : ".");
    return pm_fail(PM_EDATA, "%s: a graph of TensorFlow's (a frozen one has its values inside), "
                             "which is not read: give the checkpoint it was made from, or turn it "
                             "into ONNX with tf2onnx", path);
}

const struct pm_tensor_format pm_format_tf_graph = {
    .name = "TensorFlow graph", .help = "refused, with what to give instead", .is = is_graph,
    .open = refuse,
};
