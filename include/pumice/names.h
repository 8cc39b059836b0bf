/* names: maps the tensor names of pretrained PyTorch classifiers, and those of the Inception
 * trainer, to the names of our nets.
 *
 * The maps in src/nets/names_*.c cover torchvision's and timm's names, after any prefix ("module.",
 * "model.", "backbone.", "state_dict.", ...). Reading converts the layouts: a convolution's OIHW to
 * HWIO, a depthwise convolution's [c, 1, h, w] to [h, w, c, 1], a fully connected layer's [out, in]
 * to [1, 1, in, out] (and reorders the rows of the first one after a map). */
#ifndef PUMICE_NAMES_H
#define PUMICE_NAMES_H

#include <pumice/plan.h>
#include <pumice/tensor_file.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the file's names are PyTorch's ("conv1.weight") rather than TensorFlow's or ours. */
bool pm_names_are_torch(const struct pm_tensor_file *f);
/* Makes a file with our names and shapes that reads from f. It takes ownership of f on success. The
 * names of the variables select the map. Every tensor of f must have a counterpart in the net,
 * except num_batches_tracked, an auxiliary head that the net lacks, and tensors with another
 * prefix. PM_EDATA for nets with TensorFlow's conventions, which would compute wrong results with
 * PyTorch's weights, and for models that only share the names (grouped or wide units,
 * squeeze-and-excitation, VGG with batch norm). */
int pm_names_torch(const struct pm_variables *v, struct pm_tensor_file *f,
                   struct pm_tensor_file **out);
/* PyTorch's name of a tensor of such a file. */
const char *pm_names_origin(const struct pm_tensor_file *f, const struct pm_file_tensor *t);
/* Like pm_names_torch for an ONNX model with our names, which export writes: its variables with
 * four dimensions have ONNX's order. */
int pm_names_onnx(const struct pm_variables *v, struct pm_tensor_file *f,
                  struct pm_tensor_file **out);

/* The Inception trainer for several GPUs, which is older than TF-Slim, has names of its own for the
 * variables of inception_v3: "conv0/weights", "mixed_35x35x256a/branch5x5/Conv_1/weights",
 * "logits/logits/weights". Optimizer slots and moving averages are named after their variables. */
bool pm_names_are_inception_trainer(const struct pm_tensor_file *f);
/* Make a file that reads from f, whose tensors have our names or the trainer's. Tensors without
 * another name keep theirs. The weights of the two classifiers are [1, 1, in, out] under our names
 * and [in, out] under the trainer's. They take ownership of f on success. PM_EDATA, for the second:
 * f has no variable of inception_v3. */
int pm_names_from_inception_trainer(struct pm_tensor_file *f, struct pm_tensor_file **out);
int pm_names_to_inception_trainer(struct pm_tensor_file *f, struct pm_tensor_file **out);

#ifdef __cplusplus
}
#endif

#endif
