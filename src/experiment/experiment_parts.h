/* experiment_parts: shared by the files of an experiment. experiment.c opens it,
 * experiment_folders.c reads data.folders, experiment_photos.c finds the conversion of folders of
 * pictures, experiment_scopes.c compiles the regular expressions of
 * the config, experiment_nets.c builds and keeps nets. */
#ifndef PM_EXPERIMENT_PARTS_H
#define PM_EXPERIMENT_PARTS_H

#include "experiment/experiment.h"

/* Compiles optim.trainable, init.trainable_scopes, optim.freeze and optim.multipliers into
 * e->regexes. PM_ECONFIG names an invalid expression. */
int pm_experiment_compile_scopes(struct pm_experiment *e);
/* Frees them; e->regexes may be NULL. */
void pm_experiment_free_scopes(struct pm_experiment *e);
/* Returns PM_ECONFIG if no variable of the net is trained, if a factor of optim.multipliers matches
 * no variable, or if an expression takes too many steps. Logs once the other expressions that match
 * no variable. */
int pm_experiment_check_trainable(const struct pm_experiment *e, const struct pm_net *net);

/* Reads data.folders into e->folders, which stays NULL without it. PM_ECONFIG. */
int pm_experiment_read_folders(struct pm_experiment *e);
/* Opens the augmentations of data.folders: e->facts.augments. Needs e->facts.augment. */
int pm_experiment_open_augments(struct pm_experiment *e);
/* Returns the place of the folder of entry i, or NULL after the last one. */
const char **pm_experiment_folder(struct pm_experiment *e, size_t i);
/* Opens the training records: e->train. */
int pm_experiment_open_train(struct pm_experiment *e);
/* Replaces each folder of pictures in data.folder and data.folders by its conversion, which is made
 * if necessary. e->config is then a copy. Folders that do not exist do not change it. PM_EDATA
 * for a folder without records that the task cannot read. */
int pm_experiment_find_photos(struct pm_experiment *e);
/* Checks data.convert. PM_ECONFIG. */
int pm_experiment_check_convert(const struct pm_experiment *e);
/* Fills e->data from data.folder, which exists: from its dataset.json and labels.txt, or from the
 * subfolders of a folder of pictures. */
int pm_experiment_describe_data(struct pm_experiment *e);
/* Makes e->order if data.folders or data.repeat_threshold need one. Reads all training records for
 * the latter. */
int pm_experiment_order(struct pm_experiment *e);

/* Returns the options for importing the model of model.onnx. */
struct pm_import_options pm_experiment_import_options(const struct pm_experiment *e);
/* Lets the task read the facts that depend on the net, from a net with heads. Training continues
 * that net. */
int pm_experiment_settle(struct pm_experiment *e);
/* Destroys the experiment's nets. A net with another holder stays alive. */
void pm_experiment_free_nets(struct pm_experiment *e);

#endif
