/* tf_graph: TensorFlow graph files, which hold no values. They are refused, and the message says
 * which file to give instead. Other programs use the same file name endings, so the content is
 * checked, too: the first field of a graph or .meta file is a message with tag 0a (an ONNX tensor
 * begins with a number); a text file begins with the name of that field. */
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
        return pm_fail(PM_EDATA, "%s: a TensorFlow graph, without values: give the checkpoint "
                                 "beside it, %.*s", path, (int)(strlen(path) - 5), path);
    if (strcmp(name, "saved_model.pb") == 0 || strcmp(name, "saved_model.pbtxt") == 0)
        return pm_fail(PM_EDATA,
                       "%s: the graph of a SavedModel, without values: give its folder, %.*s", path,
                       slash ? (int)(slash - path) : 1, slash ? path : ".");
    return pm_fail(PM_EDATA,
                   "%s: a TensorFlow graph (a frozen graph holds its values), which Pumice "
                   "cannot read: give the checkpoint it was made from, or convert it "
                   "to ONNX with tf2onnx",
                   path);
}

const struct pm_tensor_format pm_format_tf_graph = {
    .name = "TensorFlow graph",
    .help = "refused; the message says what to give instead",
    .is = is_graph,
    .open = refuse,
};
