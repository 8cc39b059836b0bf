/* The flags of the original programs, one table per program, each with its replacement here.
 * docs/migrating.md is generated from these tables (pm_config_flags_markdown). A test checks that
 * every key in them exists, so a renamed key must be renamed here, too.
 *
 * A row's note states a difference in meaning. Our default is looked up, not written here. */
#include "config/flag_rows.h"

#define SERVERS \
    "the last processes of `mpirun`; only with `run.sync_replicas` false, or with " \
    "`run.replicas_to_aggregate` below the number of processes"
#define SYNC "default `true`"
#define AGGREGATE "`0`: all processes; `run.batch_size` counts all gradients of an update together"
#define DELAY "only with `run.sync_replicas` false"
#define PROCESSES "set by `mpirun -n`; 0: as many as are started"
#define DATA                                                           \
    FLAG("dataset_dir", "none", "data.folder",                         \
         "written by `dataset convert` or `download`, or by TF-Slim"), \
        FLAG("dataset_name", "`\"imagenet\"`", "data.folder",          \
             "`labels.txt` and `dataset.json` in the folder describe its contents")
#define OFFSET FLAG("labels_offset", "`0`", "data.labels_offset", NULL)
#define GREY                                           \
    FLAG("use_grayscale", "`false`", "input.channels", \
         "`1`: grey = 0.2989 R + 0.5870 G + 0.1140 B")
#define MODEL FLAG("model_name", "`\"inception_v3\"`", "model.name", "or `model.layers`")
#define PREPROCESSING                                          \
    FLAG("preprocessing_name", "none", "input.preprocessing", \
         "`null`: the net's; the name of a net selects TF-Slim's for that net")

static const struct pm_flag train[] = {
    MASTER,
    FLAG("num_clones", "`1`", "devices", "one entry per clone: `[\"vulkan:0\", \"vulkan:1\"]`"),
    FLAG("clone_on_cpu", "`false`", "devices", "`[\"cpu\"]`"),
    FLAG("worker_replicas", "`1`", "run.replicas", PROCESSES),
    FLAG("num_ps_tasks", "`0`", "run.parameter_servers", SERVERS),
    FLAG("task", "`0`", "run.task", TASK),
    FLAG("sync_replicas", "`false`", "run.sync_replicas", SYNC),
    FLAG("replicas_to_aggregate", "`1`", "run.replicas_to_aggregate", AGGREGATE),
    FLAG("train_dir", "a temporary folder", "run.folder", "must be given"),
    FLAG("log_every_n_steps", "`10`", "run.log_every_steps", NULL),
    FLAG("save_summaries_secs", "`600`", "run.summary_every_secs",
         "histograms and pictures only; scalars are written with each logged line. Also set "
         "`run.summary_every_steps` to 0"),
    FLAG("save_interval_secs", "`600`", "run.save_every_secs", NULL),
    FLAG("weight_decay", "`0.00004`", "optim.weight_decay",
         "`null`: the net's own value, which the flag overrode there; to repeat a recipe set the "
         "flag's value, as the configs of `configs/slim` do"),
    FLAG("optimizer", "`\"rmsprop\"`", "optim.name", NULL),
    FLAG("adadelta_rho", "`0.95`", "optim.rho", NULL),
    FLAG("adagrad_initial_accumulator_value", "`0.1`", "optim.initial", NULL),
    FLAG("adam_beta1", "`0.9`", "optim.beta1", NULL),
    FLAG("adam_beta2", "`0.999`", "optim.beta2", NULL),
    FLAG("opt_epsilon", "`1.0`", "optim.epsilon", "for adadelta, adam and rmsprop"),
    FLAG("ftrl_learning_rate_power", "`-0.5`", "optim.power", NULL),
    FLAG("ftrl_initial_accumulator_value", "`0.1`", "optim.initial", NULL),
    FLAG("ftrl_l1", "`0.0`", "optim.l1", NULL),
    FLAG("ftrl_l2", "`0.0`", "optim.l2", NULL),
    FLAG("momentum", "`0.9`", "optim.momentum", "for momentum (in 2017 also for rmsprop)"),
    FLAG("rmsprop_momentum", "`0.9`", "optim.momentum", "for rmsprop"),
    FLAG("rmsprop_decay", "`0.9`", "optim.decay", NULL),
    FLAG("quantize_delay", "`-1`", "model.quantize_delay", NULL),
    FLAG("learning_rate_decay_type", "`\"exponential\"`", "schedule.policy",
         "`cosine` and `piecewise` are available as well"),
    FLAG("learning_rate", "`0.01`", "schedule.base_lr", NULL),
    FLAG("end_learning_rate", "`0.0001`", "schedule.end_lr", NULL),
    FLAG("label_smoothing", "`0.0`", "loss.label_smoothing", NULL),
    FLAG("learning_rate_decay_factor", "`0.94`", "schedule.decay_factor", NULL),
    FLAG("num_epochs_per_decay", "`2.0`", "schedule.num_epochs_per_decay",
         "TF-Slim counted the steps of an epoch from one clone's batch: "
         "`schedule.epoch_count` \"per_clone\""),
    FLAG("warmup_epochs", "`0`", "schedule.warmup_epochs", NULL),
    FLAG("moving_average_decay", "none", "optim.moving_average_decay", "`0`: no averages"),
    DATA,
    FLAG("dataset_split_name", "`\"train\"`", "data.train_split", NULL),
    OFFSET,
    FLAG("num_readers", "`4`", "data.threads",
         "the same threads read, decode and augment; `0`: one per core"),
    FLAG("num_preprocessing_threads", "`4`", "data.threads",
         "the batch does not depend on their number"),
    FLAG("batch_size", "`32`", "run.batch_size",
         "there per clone, here for all clones together: multiply by `num_clones`"),
    GREY,
    MODEL,
    PREPROCESSING,
    FLAG("train_image_size", "none", "input.size", "`null`: the net's"),
    FLAG("max_number_of_steps", "none", "run.steps", "`0`: until stopped"),
    FLAG("checkpoint_path", "none", "init.checkpoint",
         "any format; ignored, as there, if the run folder has a checkpoint"),
    FLAG("checkpoint_exclude_scopes", "none", "init.exclude_scopes", "a list instead of commas"),
    FLAG("trainable_scopes", "none", "init.trainable_scopes", "a list instead of commas"),
    FLAG("ignore_missing_vars", "`false`", "init.ignore_missing", NULL),
    { 0 },
};

static const struct pm_flag library[] = {
    FLAG("clip_gradient_norm", "`0`", "optim.clip_variable_norm",
         "per variable, as there; `optim.clip_norm` clips the norm of all variables together"),
    FLAG("gradient_multipliers", "none", "optim.multipliers",
         "regular expressions instead of names"),
    FLAG("startup_delay_steps", "`0`", "run.startup_delay_steps", DELAY),
    FLAG("trace_every_n_steps", "none", "run.trace_steps",
         "one range of steps, not every n-th step"),
    { 0 },
};

static const struct pm_flag evaluation[] = {
    FLAG("batch_size", "`100`", "eval.batch_size", NULL),
    FLAG("max_num_batches", "none", "eval.max_batches",
         "`0`: the whole split, each example exactly once; there the last batch repeated examples"),
    NO_MASTER,
    FLAG("checkpoint_path", "a temporary folder", "eval.checkpoint",
         "`null`: the newest of `run.folder`"),
    FLAG("eval_dir", "a temporary folder", "run.folder",
         "results are in `eval_SPLIT` in the run folder, under the same tags"),
    FLAG("num_preprocessing_threads", "`4`", "data.threads", "`0`: one per core"),
    DATA,
    FLAG("dataset_split_name", "`\"test\"`", "data.eval_split", NULL),
    OFFSET,
    MODEL,
    PREPROCESSING,
    FLAG("moving_average_decay", "none", "eval.averages",
         "there any value switched the averages on"),
    FLAG("eval_image_size", "none", "input.eval_size", "`null`: `input.size`, or the net's"),
    FLAG("quantize", "`false`", "model.quantize_delay", "true: set 0 or more"),
    GREY,
    { 0 },
};

static const struct pm_flag export[] = {
    MODEL,
    FLAG("is_training", "`false`", "export.training",
         "the original writes no values: set `export.checkpoint` to `\"none\"` for the same"),
    FLAG("image_size", "none", "export.size", "`null`: `input.eval_size`, or the net's"),
    FLAG("default_image_size", "`224`", "export.size",
         "flag of 2017, for nets without a default size"),
    FLAG("batch_size", "none", "export.batch_size", NULL),
    FLAG("dataset_name", "`\"imagenet\"`", "data.folder",
         "gives the number of classes; or set `model.num_classes`"),
    FLAG("dataset_dir", "`\"\"`", "data.folder", NULL),
    OFFSET,
    FLAG("output_file", "`\"\"`", "export.file", NULL),
    FLAG("quantize", "`false`", "model.quantize_delay", "true: set 0 or more"),
    NONE("is_video_model", "`false`", "nets for video are not available"),
    NONE("num_frames", "none", "nets for video are not available"),
    NONE("write_text_graphdef", "`false`", "Pumice writes no TensorFlow graphs"),
    GREY,
    { 0 },
};

static const struct pm_flag converting[] = {
    ELSE("dataset_name", "none", "NAME of `pumice dataset download NAME DST`",
         "mnist, cifar10, flowers, visualwakewords; use `dataset convert` for files on the disk"),
    ELSE("dataset_dir", "none", "DST", NULL),
    ELSE("small_object_area_threshold", "`0.005`", "`small_object_area_threshold=`",
         "option of `convert` and `download` visualwakewords"),
    ELSE("foreground_class_of_interest", "`\"person\"`", "`foreground_class=`", "the same"),
    ELSE("coco_dirname", "`\"coco_dataset\"`", "`--raw FOLDER`",
         "folder of the archives and pictures"),
    ELSE("coco_train_url", "COCO 2014", "`--from ADDRESS`",
         "a server folder that has all archives under their names"),
    ELSE("coco_validation_url", "COCO 2014", "`--from ADDRESS`", NULL),
    ELSE("coco_annotations_url", "COCO 2014", "`--from ADDRESS`", NULL),
    { 0 },
};

static const struct pm_flag building[] = {
    ELSE("train_directory", "a temporary folder", "SRC of `pumice dataset convert NAME SRC DST`",
         "SRC/train"),
    ELSE("validation_directory", "a temporary folder", "`validation_directory=`",
         "or SRC/validation"),
    ELSE("output_directory", "a temporary folder", "DST", NULL),
    ELSE("train_shards", "`1024`, `2`", "`train_shards=`", NULL),
    ELSE("validation_shards", "`128`, `2`", "`validation_shards=`", NULL),
    ELSE("num_threads", "`8`, `2`", "`num_threads=`",
         "0: one per core; the files do not depend on it"),
    ELSE("labels_file", "a list of synsets or labels", "`labels_file=`", NULL),
    ELSE("imagenet_metadata_file", "synsets and their names", "`imagenet_metadata_file=`", NULL),
    ELSE("bounding_box_file", "a table of boxes", "`bounding_box_file=`", NULL),
    { 0 },
};

static const struct pm_flag inception[] = {
    FLAG("train_dir", "a temporary folder", "run.folder",
         "there emptied at each start; here the run continues and nothing is deleted"),
    FLAG("max_steps", "`10000000`", "run.steps", NULL),
    FLAG("subset", "`\"train\"`", "data.train_split", NULL),
    FLAG("num_gpus", "`1`", "devices", "one entry per GPU"),
    NONE("log_device_placement", "`false`",
         "`pumice config show --plan -v` lists the calls of each device"),
    FLAG("fine_tune", "`false`", "init.exclude_scopes",
         "true: list the scopes of the last layers, "
         "`[\"InceptionV3/Logits\", \"InceptionV3/AuxLogits/Conv2d_2b_1x1\"]`"),
    FLAG("pretrained_model_checkpoint_path", "`\"\"`", "init.checkpoint",
         "the trainer's own names (`conv0/weights`) are translated"),
    FLAG("checkpoint_dir", "`\"\"`", "init.checkpoint",
         "flag of one variant: set `init.restore` to `\"all\"`, too, which also restores slots, "
         "averages and the step"),
    FLAG("initial_learning_rate", "`0.1`", "schedule.base_lr", NULL),
    FLAG("num_epochs_per_decay", "`30.0`", "schedule.num_epochs_per_decay",
         "counted from the whole batch, as there"),
    FLAG("learning_rate_decay_factor", "`0.16`", "schedule.decay_factor", NULL),
    FLAG("data_dir", "a temporary folder", "data.folder", NULL),
    FLAG("batch_size", "`32`", "run.batch_size", "for all GPUs together, as there"),
    FLAG("image_size", "`299`", "input.size", "`null`: the net's"),
    FLAG("num_preprocess_threads", "`4`", "data.threads",
         "there per tower, a multiple of 4; `input.preprocessing` `inception_trainer` has its "
         "distortions"),
    FLAG("num_readers", "`4`", "data.threads", "`0`: one per core"),
    FLAG("input_queue_memory_factor", "`16`", "data.ring",
         "batches prepared ahead; the whole split is shuffled, without a queue"),
    { 0 },
};

static const struct pm_flag distributed[] = {
    NONE("job_name", "`\"\"`",
         "the last processes of `mpirun` hold variables: `run.parameter_servers`"),
    FLAG("task_id", "`0`", "run.task", TASK),
    FLAG("ps_hosts", "`\"\"`", "run.parameter_servers", SERVERS),
    FLAG("worker_hosts", "`\"\"`", "run.replicas", PROCESSES),
    NONE("protocol", "`\"grpc\"`", NULL),
    FLAG("train_dir", "a temporary folder", "run.folder", NULL),
    FLAG("max_steps", "`1000000`", "run.steps", NULL),
    FLAG("subset", "`\"train\"`", "data.train_split", NULL),
    NONE("log_device_placement", "`false`", NULL),
    FLAG("num_replicas_to_aggregate", "`-1`", "run.replicas_to_aggregate", AGGREGATE),
    FLAG("save_interval_secs", "`600`", "run.save_every_secs", NULL),
    FLAG("save_summaries_secs", "`180`", "run.summary_every_secs", NULL),
    FLAG("initial_learning_rate", "`0.045`", "schedule.base_lr", NULL),
    FLAG("num_epochs_per_decay", "`2.0`", "schedule.num_epochs_per_decay", NULL),
    FLAG("learning_rate_decay_factor", "`0.94`", "schedule.decay_factor", NULL),
    FLAG("batch_size", "`32`", "run.batch_size", "there per worker"),
    { 0 },
};

static const struct pm_flag inception_eval[] = {
    FLAG("eval_dir", "a temporary folder", "run.folder",
         "results are in `eval_SPLIT` in the run folder; nothing is deleted. `Precision @ 1` is "
         "the tag `eval/Accuracy`, `Recall @ 5` is `eval/Recall_5`"),
    FLAG("checkpoint_dir", "a temporary folder", "eval.checkpoint",
         "`null`: the newest of `run.folder`"),
    FLAG("eval_interval_secs", "`300`", "eval.interval_secs", "for `pumice eval --watch`"),
    FLAG("run_once", "`false`", "eval.max_runs",
         "`pumice eval` runs once; with `--watch` it runs until `run.steps`"),
    FLAG("num_examples", "`50000`", "eval.max_batches",
         "counted in batches; `0`: the whole split, each example exactly once"),
    FLAG("subset", "`\"validation\"`", "data.eval_split", NULL),
    FLAG("data_dir", "a temporary folder", "data.folder", NULL),
    FLAG("batch_size", "`32`", "eval.batch_size", NULL),
    FLAG("image_size", "`299`", "input.eval_size", "`null`: `input.size`, or the net's"),
    { 0 },
};

static const struct pm_flag mobilenet[] = {
    MASTER,
    FLAG("task", "`0`", "run.task", TASK),
    FLAG("ps_tasks", "`0`", "run.parameter_servers", SERVERS),
    FLAG("batch_size", "`64`", "run.batch_size", NULL),
    FLAG("num_classes", "`1001`", "model.num_classes", "`0`: the data's"),
    FLAG("number_of_steps", "none", "run.steps", "`0`: until stopped"),
    FLAG("image_size", "`224`", "input.size", "`null`: the net's"),
    FLAG("depth_multiplier", "`1.0`", "model.depth_multiplier",
         "or select it by name: `mobilenet_v1_050`"),
    FLAG("quantize", "`false`", "model.quantize_delay", "true: set 0 or more"),
    FLAG("fine_tune_checkpoint", "`\"\"`", "init.checkpoint",
         "also set `init.ignore_missing` to true and `schedule.base_lr` to 0.0001, as the flag "
         "did"),
    FLAG("checkpoint_dir", "`\"\"`", "run.folder", NULL),
    FLAG("dataset_dir", "`\"\"`", "data.folder", NULL),
    FLAG("log_every_n_steps", "`100`", "run.log_every_steps", NULL),
    FLAG("save_summaries_secs", "`100`", "run.summary_every_secs", NULL),
    FLAG("save_interval_secs", "`100`", "run.save_every_secs", NULL),
    { 0 },
};

static const struct pm_flag mobilenet_eval[] = {
    NO_MASTER,
    FLAG("batch_size", "`250`", "eval.batch_size", NULL),
    FLAG("num_classes", "`1001`", "model.num_classes", "`0`: the data's"),
    FLAG("num_examples", "`50000`", "eval.max_batches",
         "counted in batches; `0`: the whole split, each example exactly once"),
    FLAG("image_size", "`224`", "input.eval_size", "`null`: `input.size`, or the net's"),
    FLAG("depth_multiplier", "`1.0`", "model.depth_multiplier",
         "or select it by name: `mobilenet_v1_050`"),
    FLAG("quantize", "`false`", "model.quantize_delay", "true: set 0 or more"),
    FLAG("checkpoint_dir", "`\"\"`", "eval.checkpoint", "`null`: the newest of `run.folder`"),
    FLAG("eval_dir", "`\"\"`", "run.folder", "results are in `eval_SPLIT` in the run folder"),
    FLAG("dataset_dir", "`\"\"`", "data.folder", NULL),
    { 0 },
};

/* The converters of TensorFlow's Object Detection API. */
#define LABEL_MAP(d) ELSE("label_map_path", d, "`label_map=`", "names in it fix numbers and order")

static const struct pm_flag convert_pascal[] = {
    ELSE("data_dir", "`\"\"`", "SRC", "the folder with VOC2007 or VOC2012, or one of them"),
    ELSE("set", "`\"train\"`", "`splits=`", "a list; without it every list becomes a split"),
    NONE("annotations_dir", "`\"Annotations\"`", "found by its name"),
    NONE("year", "`\"VOC2007\"`", "all years in SRC are joined, as with `merged`"),
    ELSE("output_path", "`\"\"`", "DST", NULL),
    LABEL_MAP("VOC's"),
    ELSE("ignore_difficult_instances", "`false`", "`ignore_difficult=`", NULL),
    { 0 },
};

static const struct pm_flag convert_coco[] = {
    ELSE("include_masks", "`false`", "`masks=`", NULL),
    ELSE("train_image_dir", "`\"\"`", "`images=`", "or SRC/train2017; with `split=`"),
    ELSE("val_image_dir", "`\"\"`", "`images=`", "or SRC/val2017"),
    ELSE("test_image_dir", "`\"\"`", "`images=`", NULL),
    ELSE("train_annotations_file", "`\"\"`", "`annotations=`",
         "or SRC/annotations/instances_train2017.json"),
    ELSE("val_annotations_file", "`\"\"`", "`annotations=`",
         "or SRC/annotations/instances_val2017.json"),
    ELSE("testdev_annotations_file", "`\"\"`", "`annotations=`", "it has no boxes to convert"),
    ELSE("output_dir", "`\"/tmp/\"`", "DST", NULL),
    { 0 },
};

static const struct pm_flag convert_kitti[] = {
    ELSE("data_dir", "`\"\"`", "SRC", NULL),
    ELSE("output_path", "`\"\"`", "DST", NULL),
    ELSE("classes_to_use", "`car,pedestrian,dontcare`", "`classes=`",
         "all types but `dontcare` by default"),
    LABEL_MAP("KITTI's"),
    ELSE("validation_set_size", "`500`", "`validation_set_size=`", "a tenth by default"),
    { 0 },
};

static const struct pm_flag convert_pet[] = {
    ELSE("data_dir", "`\"\"`", "SRC", NULL),
    ELSE("output_dir", "`\"\"`", "DST", NULL),
    LABEL_MAP("the pets'"),
    ELSE("faces_only", "`true`", "`heads=`", NULL),
    NONE("mask_type", "`\"png\"`", "masks are PNG; numbers are read, too"),
    ELSE("num_shards", "`10`", "`num_shards=`", NULL),
    { 0 },
};

static const struct pm_flag convert_open_images[] = {
    ELSE("input_box_annotations_csv", "none", "SRC",
         "SRC/annotations/*SPLIT-annotations-bbox.csv"),
    ELSE("input_images_directory", "none", "SRC", "SRC/images/SPLIT"),
    NONE("input_image_label_annotations_csv", "none", "labels of whole pictures are not read"),
    ELSE("input_label_map", "none", "`label_map=`", NULL),
    ELSE("output_tf_record_path_prefix", "none", "DST", NULL),
    ELSE("num_shards", "`100`", "`num_shards=`", "10 by default"),
    { 0 },
};

const struct pm_program pm_programs[] = {
    { "train_image_classifier", "Here: `pumice train CONFIG`.", train },
    { "Arguments of TF-Slim's training library",
      "The trainer passed these arguments; it had no flags for them.", library },
    { "eval_image_classifier",
      "Here: `pumice eval CONFIG`, with `--watch` for each new checkpoint.",
      evaluation },
    { "export_inference_graph",
      "Here: `pumice export CONFIG`. It writes ONNX with the values of `eval.checkpoint`.",
      export },
    { "download_and_convert_data", "Here: arguments of `pumice dataset`, not keys.", converting },
    { "build_imagenet_data, build_image_data",
      "Here: `pumice dataset convert imagenet SRC DST` and `pumice dataset convert "
      "build_image_data SRC DST`, with options as `NAME=VALUE` or `--NAME=VALUE`.",
      building },
    { "imagenet_train, flowers_train of the Inception trainer", "Here: `pumice train CONFIG`.",
      inception },
    { "imagenet_distributed_train of the Inception trainer",
      "Here: `pumice launch` ([replicas.md](replicas.md)). Flags that are missing here are in the "
      "table above.",
      distributed },
    { "imagenet_eval, flowers_eval of the Inception trainer",
      "Here: `pumice eval CONFIG [--watch]`.",
      inception_eval },
    { "mobilenet_v1_train",
      "Here: `pumice train CONFIG`. The original used gradient descent at 0.045, times 0.94 every "
      "2.5 epochs.",
      mobilenet },
    { "mobilenet_v1_eval", "Here: `pumice eval CONFIG`.", mobilenet_eval },
    { "create_pascal_tf_record", "Here: `pumice dataset convert voc SRC DST`, with options as "
      "`NAME=VALUE` or `--NAME=VALUE`.", convert_pascal },
    { "create_coco_tf_record", "Here: `pumice dataset convert coco SRC DST`. It finds COCO's own "
      "files; the options are for other names.", convert_coco },
    { "create_kitti_tf_record", "Here: `pumice dataset convert kitti SRC DST`.", convert_kitti },
    { "create_pet_tf_record", "Here: `pumice dataset convert oxford_pets SRC DST`. With Python 3 "
      "the original makes the same splits.", convert_pet },
    { "create_oid_tf_record", "Here: `pumice dataset convert open_images SRC DST`.",
      convert_open_images },
    { "Options of all DeepLab programs",
      "Flags of train, eval, vis and export_model. In these tables the defaults here are those "
      "with `\"task\": \"segmentation\"`.", pm_flags_deeplab_model, "segmentation" },
    { "train of DeepLab",
      "Here: `pumice train CONFIG`. [Variants](#variants-of-deeplabs-trainer) differ where a note "
      "says so.", pm_flags_deeplab_train, "segmentation" },
    { "eval and vis of DeepLab", "Here: `pumice eval CONFIG`, with `--watch` for each new "
      "checkpoint, and `pumice predict CONFIG FILE...`.", pm_flags_deeplab_eval, "segmentation" },
    { "export_model of DeepLab", "Here: `pumice export CONFIG`.", pm_flags_deeplab_export,
      "segmentation" },
    { 0 },
};
