/* names: PyTorch's names of a pretrained classifier's tensors, and how they become those of our nets.
 *
 * Known are torchvision's and timm's names of the nets in src/nets/names_*.c, after any prefix
 * ("module.", "model.", "backbone.", "state_dict.", ...). Layouts become ours while reading: a
 * convolution's OIHW is HWIO, a depthwise one's [c, 1, h, w] is [h, w, c, 1], a fully connected
 * layer's [out, in] is [1, 1, in, out] (the first one behind a map: its rows are reordered too). */
#ifndef PUMICE_NAMES_H
#define PUMICE_NAMES_H

#include <pumice/plan.h>
#include <pumice/tensor_file.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the file's names are PyTorch's ("conv1.weight") rather than TensorFlow's or ours. */
bool pm_names_are_torch(const struct pm_tensor_file *f);
/* A file with our names and shapes over f, which it takes and closes with itself. Which map is wanted
 * is told by the variables' names. All of f's tensors must have a place in the net, but for
 * num_batches_tracked, an auxiliary head that the net lacks, and those with another prefix. Refused
 * are nets with TensorFlow's conventions, which compute something else with PyTorch's weights, and
 * models that only share the names (grouped or wide units, squeeze-and-excitation, vgg with batch
 * norm): PM_EDATA, and f stays the caller's. */
int pm_names_torch(const struct pm_variables *v, struct pm_tensor_file *f,
                   struct pm_tensor_file **out);
/* What PyTorch calls a tensor of such a file. */
const char *pm_names_origin(const struct pm_tensor_file *f, const struct pm_file_tensor *t);
/* A file like that of pm_names_torch over an ONNX model that has our names, as export writes it:
 * variables of four dimensions stand there in ONNX's order. */
int pm_names_onnx(const struct pm_variables *v, struct pm_tensor_file *f,
                  struct pm_tensor_file **out);

#ifdef __cplusplus
}
#endif

#endif
