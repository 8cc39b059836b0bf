/* cases: small nets, as lists of layers. Together they reach every layer's kernels in every
 * variant; tests/verify/ compares them with the tables of layers and shaders. A new layer gets a
 * row, or lines in one.
 *
 * Sizes are chosen so that each row tests all paths of its kernels: channels that are and are not
 * multiples of 4, odd sizes, strides, padding on one side, more columns than a tile. The big rows
 * have just enough pixels or channels for the large tiles of GPUs. */
#include "verify/case_losses.h"
#include "verify/verify_private.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <string.h>

/* A detector of two maps, without the end of the list. */
#define DETECTOR                                                                                   \
    "[{'name':'boxes_1','layer':'conv2d','filters':12,'kernel':1},"                                \
    "{'name':'b','layer':'conv2d','filters':4,'kernel':3,'stride':2,'inputs':['images']},"         \
    "{'name':'boxes_2','layer':'conv2d','filters':24,'kernel':1},"                                 \
    "{'name':'anchors','layer':'ssd_anchors','inputs':['images','boxes_1','boxes_2']},"            \
    "{'name':'classes_1','layer':'conv2d','filters':15,'kernel':1,'inputs':['images']},"           \
    "{'name':'classes_2','layer':'conv2d','filters':30,'kernel':1,'inputs':['b']}"

/* The same with rotated boxes. */
#define ROTATED_DETECTOR                                                                           \
    "[{'name':'boxes_1','layer':'conv2d','filters':30,'kernel':1},"                                \
    "{'name':'b','layer':'conv2d','filters':4,'kernel':3,'stride':2,'inputs':['images']},"         \
    "{'name':'boxes_2','layer':'conv2d','filters':60,'kernel':1},"                                 \
    "{'name':'anchors','layer':'ssd_anchors','angles':[0,0.8],"                                    \
    "'inputs':['images','boxes_1','boxes_2']},"                                                    \
    "{'name':'classes_1','layer':'conv2d','filters':30,'kernel':1,'inputs':['images']},"           \
    "{'name':'classes_2','layer':'conv2d','filters':60,'kernel':1,'inputs':['b']}"

/* Codes of two keypoints of each anchor of DETECTOR. */
#define KEYPOINT_CODES                                                                             \
    ",{'name':'codes_1','layer':'reshape','shape':[0,-1,4],'inputs':['boxes_1']},"                 \
    "{'name':'codes_2','layer':'reshape','shape':[0,-1,4],'inputs':['boxes_2']},"                  \
    "{'name':'codes','layer':'concat','axis':1,'inputs':['codes_1','codes_2']}"

/* Every function of one number, on a, or on p if it needs positive numbers. */
#define FUNCTIONS                                                                                  \
    "{'name':'elu','layer':'elu','inputs':['a']},{'name':'celu','layer':'celu','inputs':['a']},"   \
    "{'name':'selu','layer':'selu','inputs':['a']},"                                               \
    "{'name':'softplus','layer':'softplus','inputs':['a']},"                                       \
    "{'name':'softsign','layer':'softsign','inputs':['a']},"                                       \
    "{'name':'exp','layer':'exp','inputs':['a']},{'name':'log','layer':'log','inputs':['p']},"     \
    "{'name':'sqrt','layer':'sqrt','inputs':['p']},"                                               \
    "{'name':'reciprocal','layer':'reciprocal','inputs':['p']},"                                   \
    "{'name':'abs','layer':'abs','inputs':['a']},{'name':'neg','layer':'neg','inputs':['a']},"     \
    "{'name':'gelu','layer':'gelu','inputs':['a']},"                                               \
    "{'name':'swish','layer':'swish','beta':1.5,'inputs':['a']},"                                  \
    "{'name':'mish','layer':'mish','inputs':['a']},"                                               \
    "{'name':'clip','layer':'clip','min':-0.5,'max':0.5,'inputs':['a']},"                          \
    "{'name':'thresholded_relu','layer':'thresholded_relu','alpha':0.1,'inputs':['a']},"           \
    "{'name':'affine','layer':'affine','scale':0.7,'shift':0.2,'inputs':['a']},"                   \
    "{'name':'power','layer':'power','exponent':2.5,'inputs':['p']},"                              \
    "{'name':'erf','layer':'erf','inputs':['a']},{'name':'ceil','layer':'ceil','inputs':['a']},"   \
    "{'name':'floor','layer':'floor','inputs':['a']},"                                             \
    "{'name':'round','layer':'round','inputs':['a']},"                                             \
    "{'name':'sign','layer':'sign','inputs':['a']},"                                               \
    "{'name':'gelu2','layer':'gelu','approximate':'tanh','inputs':['a']},"                         \
    "{'name':'power2','layer':'power','exponent':2,'inputs':['a']},"                               \
    "{'name':'power3','layer':'power','exponent':3,'inputs':['a']},"                               \
    "{'name':'s0','layer':'add','inputs':['elu','celu','selu','softplus','softsign','exp',"        \
    "'log','sqrt']},"                                                                              \
    "{'name':'s1','layer':'add','inputs':['reciprocal','abs','neg','gelu','swish','mish',"         \
    "'clip','thresholded_relu']},"                                                                 \
    "{'name':'s2','layer':'add','inputs':['affine','power','erf','ceil','floor','round',"          \
    "'sign','gelu2']},"                                                                            \
    "{'name':'s3','layer':'add','inputs':['power2','power3']},"                                    \
    "{'name':'sum','layer':'add','inputs':['s0','s1','s2','s3']}]"

static const struct pm_verify_net cases[] = {
    { "convolutions", PM_SHAPE4(2, 9, 11, 3), "", false,
      "[{'name':'a','layer':'conv2d','filters':8,'kernel':3,'activation':'relu'},"
      "{'name':'b','layer':'conv2d','filters':13,'kernel':[3,5],'stride':2,'bias':false},"
      "{'name':'c','layer':'conv2d','filters':16,'kernel':1,'activation':'relu6'},"
      "{'name':'d','layer':'conv2d','filters':64,'kernel':3,'dilation':2,'activation':'leaky_relu'}"
      ","
      "{'name':'e','layer':'conv2d','filters':36,'kernel':3,'groups':4,'bias':false},"
      "{'name':'f','layer':'conv2d','filters':6,'kernel':3,'stride':2,'groups':3},"
      "{'name':'g','layer':'conv2d','filters':9,'kernel':1,'activation':'sigmoid'},"
      "{'name':'h','layer':'conv2d','filters':5,'kernel':1,'stride':2,'activation':'tanh'}]" },
    { "convolutions_wide", PM_SHAPE4(2, 12, 12, 16), "", false,
      "[{'name':'a','layer':'conv2d','filters':32,'kernel':3,'bias':false},"
      "{'name':'b','layer':'conv2d','filters':128,'kernel':1,'bias':false},"
      "{'name':'c','layer':'conv2d','filters':48,'kernel':3,'stride':2,'bias':false},"
      "{'name':'d','layer':'conv2d','filters':96,'kernel':3,'bias':false},"
      "{'name':'e','layer':'conv2d','filters':40,'kernel':3,'padding':'valid','bias':false},"
      "{'name':'f','layer':'global_pool'}]" },
    { "convolution_stem", PM_SHAPE4(1, 32, 32, 3), "", false,
      "[{'name':'a','layer':'conv2d','filters':64,'kernel':7,'stride':2,'padding':'explicit',"
      "'pad':[3,3,3,3],'bias':false},"
      "{'name':'b','layer':'conv2d','filters':7,'kernel':3,'stride':3}]" },
    { "convolutions_many_pixels", PM_SHAPE4(1, 112, 112, 8), "", false,
      "[{'name':'a','layer':'conv2d','filters':128,'kernel':1,'bias':false},"
      "{'name':'b','layer':'conv2d','filters':8,'kernel':1,'bias':false},"
      "{'name':'c','layer':'conv2d','filters':64,'kernel':1,'bias':false},"
      "{'name':'d','layer':'conv2d','filters':4,'kernel':1,'bias':false},"
      "{'name':'e','layer':'global_pool'}]" },
    { "convolutions_many_channels", PM_SHAPE4(1, 6, 6, 176), "", false,
      "[{'name':'a','layer':'conv2d','filters':128,'kernel':3,'bias':false},"
      "{'name':'b','layer':'conv2d','filters':176,'kernel':1,'bias':false},"
      "{'name':'c','layer':'conv2d','filters':64,'kernel':3,'bias':false},"
      "{'name':'d','layer':'global_pool'}]" },
    { "transposed", PM_SHAPE4(2, 5, 4, 6), "", false,
      "[{'name':'a','layer':'conv2d_transpose','filters':8,'kernel':4,'stride':2},"
      "{'name':'b','layer':'conv2d_transpose','filters':5,'kernel':3,'stride':2,"
      "'padding':'valid','bias':false},"
      "{'name':'c','layer':'conv2d_transpose','filters':7,'kernel':[5,3],'stride':[3,1],"
      "'activation':'relu'}]" },
    { "depthwise", PM_SHAPE4(2, 9, 10, 8), "", false,
      "[{'name':'a','layer':'depthwise_conv2d','kernel':3},"
      "{'name':'b','layer':'depthwise_conv2d','kernel':3,'multiplier':2,'bias':false},"
      "{'name':'c','layer':'depthwise_conv2d','kernel':[3,5],'dilation':2,'bias':false},"
      "{'name':'d','layer':'depthwise_conv2d','kernel':3,'stride':2,'activation':'relu6'},"
      "{'name':'e','layer':'depthwise_conv2d','kernel':9,'bias':false}]" },
    { "depthwise_wide", PM_SHAPE4(1, 24, 23, 70), "", false,
      "[{'name':'a','layer':'depthwise_conv2d','kernel':3,'bias':false},"
      "{'name':'b','layer':'depthwise_conv2d','kernel':5,'stride':2,'bias':false},"
      "{'name':'c','layer':'global_pool'}]" },
    { "activations_four", PM_SHAPE4(2, 5, 4, 8), "", false,
      "[{'name':'a','layer':'conv2d','filters':8,'kernel':1},"
      "{'name':'b','layer':'relu'},{'name':'c','layer':'relu6','inputs':['a']},"
      "{'name':'d','layer':'leaky_relu','slope':0.2,'inputs':['a']},"
      "{'name':'e','layer':'sigmoid','inputs':['a']},{'name':'f','layer':'tanh','inputs':['a']},"
      "{'name':'g','layer':'hard_sigmoid','inputs':['a']},"
      "{'name':'h','layer':'hard_swish','inputs':['a']},"
      "{'name':'i','layer':'add','inputs':['b','c','d','e','f','g','h']}]" },
    { "activations_odd", PM_SHAPE2(5, 7), "", false,
      "[{'name':'a','layer':'fully_connected','units':9},"
      "{'name':'b','layer':'relu'},{'name':'c','layer':'relu6','inputs':['a']},"
      "{'name':'d','layer':'leaky_relu','slope':0.2,'inputs':['a']},"
      "{'name':'e','layer':'sigmoid','inputs':['a']},{'name':'f','layer':'tanh','inputs':['a']},"
      "{'name':'g','layer':'hard_sigmoid','inputs':['a']},"
      "{'name':'h','layer':'hard_swish','inputs':['a']},"
      "{'name':'i','layer':'add','inputs':['b','c','d','e','f','g','h'],'scale':0.5,"
      "'activation':'relu'}]" },
    { "functions_four", PM_SHAPE4(2, 3, 4, 8), "", false,
      "[{'name':'a','layer':'conv2d','filters':8,'kernel':1},{'name':'p','layer':'sigmoid'}"
      "," FUNCTIONS },
    { "functions_odd", PM_SHAPE2(5, 7), "", false,
      "[{'name':'a','layer':'fully_connected','units':9},{'name':'p','layer':'sigmoid'}"
      "," FUNCTIONS },
    { "normalised", PM_SHAPE4(3, 6, 5, 4), "", false,
      "[{'name':'a','layer':'conv2d','filters':8,'kernel':3,'bias':false},"
      "{'name':'b','layer':'batch_norm','activation':'relu'},"
      "{'name':'c','layer':'conv2d','filters':8,'kernel':3,'bias':false},"
      "{'name':'d','layer':'batch_norm','activation':'relu','inputs':['c','b']},"
      "{'name':'e','layer':'conv2d','filters':7,'kernel':3,'bias':false},"
      "{'name':'f','layer':'batch_norm','activation':'relu6','decay':0.9},"
      "{'name':'g','layer':'conv2d','filters':7,'kernel':1,'bias':false},"
      "{'name':'h','layer':'batch_norm','scale':false,'inputs':['g','f']},"
      "{'name':'i','layer':'batch_norm','center':false,'activation':'hard_swish'},"
      "{'name':'j','layer':'batch_norm','frozen':true,'activation':'leaky_relu'},"
      "{'name':'k','layer':'conv2d','filters':12,'kernel':1,'bias':false},"
      "{'name':'l','layer':'batch_norm','moving_variance':'biased'},"
      "{'name':'m','layer':'fake_quant'}]" },
    { "normalised_eval", PM_SHAPE4(2, 6, 5, 4), "", false,
      "[{'name':'a','layer':'conv2d','filters':8,'kernel':3,'bias':false},"
      "{'name':'b','layer':'batch_norm','activation':'relu'},"
      "{'name':'c','layer':'conv2d','filters':7,'kernel':1,'bias':false},"
      "{'name':'d','layer':'batch_norm'},{'name':'e','layer':'dropout'}]",
      .forward_only = true },
    { "normalised_long", PM_SHAPE2(700, 3), "", false,
      "[{'name':'a','layer':'fully_connected','units':6,'bias':false},"
      "{'name':'b','layer':'batch_norm','activation':'relu'},"
      "{'name':'c','layer':'fully_connected','units':300},"
      "{'name':'d','layer':'batch_norm'},{'name':'e','layer':'fully_connected','units':5}]" },
    { "normalised_valid", PM_SHAPE4(2, 6, 8, 4), "", false, /* 48 rows; 30 at most are valid */
      "[{'name':'b','layer':'reshape','shape':[0,-1,4]},"
      "{'name':'s','layer':'reshape','shape':[0,-1,4],'inputs':['images']},"
      "{'name':'n','layer':'suppress','max_detections_per_class':20,"
      "'max_total_detections':30,'inputs':['b','s']},"
      "{'name':'c','layer':'conv2d','filters':8,'kernel':3,'bias':false,'inputs':['images']},"
      "{'name':'r','layer':'reshape','shape':[-1,8]},"
      "{'name':'d','layer':'batch_norm','activation':'relu','inputs':['r','n:3']},"
      "{'name':'e','layer':'batch_norm','activation':'hard_swish','inputs':['d','r','n:3']},"
      "{'name':'f','layer':'fully_connected','units':7,'bias':false},"
      "{'name':'g','layer':'batch_norm','inputs':['f','n:3']},"
      "{'name':'h','layer':'batch_norm','activation':'sigmoid','inputs':['g','f','n:3']}]" },
    { "pools_four", PM_SHAPE4(2, 20, 19, 3), "", false,
      "[{'name':'a','layer':'conv2d','filters':8,'kernel':3,'bias':false},"
      "{'name':'b','layer':'max_pool','kernel':3,'stride':2},"
      "{'name':'c','layer':'avg_pool','kernel':3,'stride':1},"
      "{'name':'d','layer':'max_pool','kernel':2,'stride':2,'padding':'valid'},"
      "{'name':'e','layer':'avg_pool','kernel':2,'stride':1,'padding':'valid'},"
      "{'name':'f','layer':'global_pool'},{'name':'g','layer':'flatten'}]" },
    { "pools_odd", PM_SHAPE4(2, 20, 19, 3), "", false,
      "[{'name':'a','layer':'conv2d','filters':7,'kernel':3,'bias':false},"
      "{'name':'b','layer':'max_pool','kernel':3,'stride':2},"
      "{'name':'c','layer':'avg_pool','kernel':3,'stride':1},"
      "{'name':'d','layer':'max_pool','kernel':2,'stride':1,'dilation':2},"
      "{'name':'e','layer':'avg_pool','kernel':[2,3],'stride':2,'padding':'explicit',"
      "'pad':[1,0,1,2],'ceil':true,'count_pad':true},"
      "{'name':'f','layer':'global_pool'},{'name':'g','layer':'reshape','shape':[0,-1]}]" },
    { "dense", PM_SHAPE2(6, 37), "label_smoothing=0.1", false,
      "[{'name':'a','layer':'fully_connected','units':64,'activation':'relu'},"
      "{'name':'b','layer':'dropout','keep':0.75},"
      "{'name':'c','layer':'fully_connected','units':33,'activation':'tanh'},"
      "{'name':'d','layer':'dropout'},"
      "{'name':'e','layer':'fully_connected','units':200}]" },
    { "paths", PM_SHAPE4(6, 3, 2, 4), "", false,
      "[{'name':'a','layer':'conv2d','filters':8,'kernel':3},"
      "{'name':'b','layer':'drop_path','keep':0.6},"
      "{'name':'c','layer':'conv2d','filters':5,'kernel':1},"
      "{'name':'d','layer':'drop_path','keep':0.2,'steps':4},"
      "{'name':'e','layer':'drop_path','keep':0.7,'inputs':['d','c']},"
      "{'name':'f','layer':'global_pool'}]" },
    { "softmaxes", PM_SHAPE4(2, 3, 3, 5), "ignore_label=1", true,
      "[{'name':'a','layer':'conv2d','filters':6,'kernel':1},{'name':'b','layer':'softmax'},"
      "{'name':'l','layer':'log_softmax'},{'name':'k','layer':'conv2d','filters':70,'kernel':1},"
      "{'name':'m','layer':'log_softmax'},"
      "{'name':'c','layer':'conv2d','filters':100,'kernel':1},{'name':'d','layer':'softmax'},"
      "{'name':'e','layer':'conv2d','filters':4,'kernel':1}]" },
    { "hard_examples", PM_SHAPE4(2, 9, 11, 4),
      "ignore_label=1 label_weights=[1,2,0.5,3,1,1] top_k_percent=0.3", true,
      "[{'name':'a','layer':'conv2d','filters':6,'kernel':1}]" },
    { "many_rows", PM_SHAPE4(1, 257, 256, 1), "ignore_label=1 normalize=kept_pixels", false,
      "[{'name':'a','layer':'conv2d','filters':4,'kernel':1}]" },
    { "degrees", PM_SHAPE4(2, 5, 7, 4), "ignore_label=0.5", true,
      "[{'name':'a','layer':'conv2d','filters':2,'kernel':1}]",
      .loss_layer = "matting_cross_entropy" },
    { "distances", PM_SHAPE4(2, 13, 7, 4), "weight=200", true,
      "[{'name':'a','layer':'conv2d','filters':1,'kernel':1}]", .loss_layer = "squared_error" },
    { "distances_apart", PM_SHAPE4(2, 13, 7, 4), "normalize=nonzero", true,
      "[{'name':'a','layer':'conv2d','filters':2,'kernel':1}]", .loss_layer = "absolute_error" },
    { "boxes", PM_SHAPE4(2, 9, 8, 4), "classification=weighted_sigmoid_focal alpha=0.25", false,
      DETECTOR "]", .loss_layer = "detection_loss" },
    { "hard_boxes", PM_SHAPE4(2, 9, 8, 4), "hard_example_miner=true num_hard_examples=90 "
      "max_negatives_per_positive=1", false, DETECTOR "]", .loss_layer = "detection_loss" },
    { "rotated_boxes", PM_SHAPE4(2, 9, 8, 4), "coder=rotated hard_example_miner=true "
      "num_hard_examples=90", false, ROTATED_DETECTOR "]", .loss_layer = "detection_loss" },
    { "rotated_detections", PM_SHAPE4(2, 9, 8, 4), "", false, ROTATED_DETECTOR
      ",{'name':'d','layer':'decode_boxes','coder':'rotated',"
      "'inputs':['boxes_1','boxes_2','anchors']},"
      "{'name':'s','layer':'class_scores','classes':4,'converter':'sigmoid',"
      "'inputs':['classes_1','classes_2']},"
      "{'name':'soft','layer':'suppress','soft_nms_sigma':0.5,'inputs':['d','s']},"
      "{'name':'any','layer':'suppress','use_class_agnostic_nms':true,"
      "'max_classes_per_detection':2,'inputs':['d','s']},"
      "{'name':'each','layer':'suppress','inputs':['d','s']},"
      "{'name':'inside','layer':'class_scores','classes':4,'prune_outside':true,'width':0.8,"
      "'inputs':['classes_1','classes_2','anchors']},"
      "{'name':'r','layer':'reshape','shape':[-1,5],'inputs':['any']},"
      "{'name':'again','layer':'decode_boxes','coder':'rotated','inputs':['r','each']}]",
      .forward_only = true },
    { "second_stage", PM_SHAPE4(2, 5, 7, 4), "", false,
      "[{'name':'c','layer':'conv2d','filters':16,'kernel':1},"
      "{'name':'codes','layer':'reshape','shape':[-1,16]},"
      "{'name':'z','layer':'conv2d','filters':5,'kernel':1,'inputs':['images']},"
      "{'name':'logits','layer':'reshape','shape':[-1,5]}]", .loss_layer = "box_classifier_loss" },
    { "rotated_second_stage", PM_SHAPE4(2, 5, 7, 4), "coder=rotated", false,
      "[{'name':'c','layer':'conv2d','filters':20,'kernel':1},"
      "{'name':'codes','layer':'reshape','shape':[-1,20]},"
      "{'name':'z','layer':'conv2d','filters':5,'kernel':1,'inputs':['images']},"
      "{'name':'logits','layer':'reshape','shape':[-1,5]}]", .loss_layer = "box_classifier_loss" },
    { "masks", PM_SHAPE4(2, 5, 7, 4), "width=37", false,
      "[{'name':'a','layer':'conv2d','filters':24,'kernel':1},"
      "{'name':'logits','layer':'reshape','shape':[-1,5,7,4]}]", .loss_layer = "mask_loss" },
    { "keypoints", PM_SHAPE4(2, 5, 7, 4), "", false,
      "[{'name':'a','layer':'conv2d','filters':24,'kernel':1},"
      "{'name':'logits','layer':'reshape','shape':[-1,5,7,3]}]", .loss_layer = "keypoint_loss" },
    { "straightened", PM_SHAPE4(2, 8, 12, 3), "", false,
      "[{'name':'a','layer':'conv2d','filters':4,'kernel':3},"
      "{'name':'p','layer':'fully_connected','units':12,'weights_init':'normal(0.01)',"
      "'bias_init':'values(0,0,0.5,0,1,0,0,1,0.5,1,1,1)','inputs':['images']},"
      "{'name':'t','layer':'thin_plate_sampler','size':[5,9],'inputs':['a','p']},"
      "{'name':'e','layer':'conv2d','filters':5,'kernel':1}]" },
    { "sequences", PM_SHAPE4(5, 4, 6, 3), "", false,
      "[{'name':'a','layer':'conv2d','filters':8,'kernel':[4,1],'padding':'valid'},"
      "{'name':'b','layer':'lstm','units':7},"
      "{'name':'c','layer':'lstm','units':66,'direction':'backward','inputs':['a']},"
      "{'name':'d','layer':'concat','inputs':['b','c']},"
      "{'name':'e','layer':'conv2d','filters':5,'kernel':1}]" },
    { "dictated_texts", PM_SHAPE4(5, 1, 6, 7), "classes=9 units=66 attention_units=10", false,
      "[{'name':'logits','layer':'conv2d','filters':66,'kernel':1}]",
      .loss_layer = "attention_decoder" },
    { "written_texts", PM_SHAPE4(5, 1, 6, 7), "", false,
      "[{'name':'s','layer':'attention_search','classes':9,'units':66,'attention_units':10,"
      "'steps':3,'beam_width':2}]", .forward_only = true },
    { "texts", PM_SHAPE4(3, 1, 9, 5), "", false,
      "[{'name':'logits','layer':'conv2d','filters':6,'kernel':1}]", .loss_layer = "ctc_loss" },
    { "coded_keypoints", PM_SHAPE4(2, 9, 8, 4), "", false, DETECTOR KEYPOINT_CODES "]",
      .loss_layer = "keypoint_code_loss" },
    { "detections", PM_SHAPE4(2, 9, 8, 4), "", false, DETECTOR
      ",{'name':'d','layer':'decode_boxes','inputs':['boxes_1','boxes_2','anchors']},"
      "{'name':'s','layer':'class_scores','classes':4,'converter':'sigmoid',"
      "'inputs':['classes_1','classes_2']},"
      "{'name':'inside','layer':'class_scores','classes':4,'prune_outside':true,"
      "'inputs':['classes_1','classes_2','anchors']},"
      "{'name':'soft','layer':'suppress','soft_nms_sigma':0.5,'inputs':['d','s']},"
      "{'name':'any','layer':'suppress','use_class_agnostic_nms':true,"
      "'max_classes_per_detection':2,'inputs':['d','s']},"
      "{'name':'each','layer':'suppress','inputs':['d','s']},"
      "{'name':'m','layer':'crop_and_resize','size':[2,3],'inputs':['images','each','each:3']},"
      "{'name':'masks','layer':'class_masks','inputs':['m','each:2','each:3']},"
      "{'name':'points','layer':'heatmap_points','inputs':['m','each','each:3']}" KEYPOINT_CODES
      ",{'name':'coded','layer':'decode_keypoints',"
      "'inputs':['codes','anchors','each:4','each:3']}]",
      .forward_only = true },
    { "detections_twice", PM_SHAPE4(2, 6, 8, 4), "", false,
      "[{'name':'b','layer':'reshape','shape':[0,-1,4]},"
      "{'name':'s','layer':'reshape','shape':[0,-1,4],'inputs':['images']},"
      "{'name':'first','layer':'suppress','max_detections_per_class':20,"
      "'max_total_detections':48,'inputs':['b','s']},"
      "{'name':'c','layer':'conv2d','filters':16,'kernel':1,'inputs':['images']},"
      "{'name':'codes','layer':'reshape','shape':[-1,16]},"
      "{'name':'d','layer':'decode_boxes','inputs':['codes','first']},"
      "{'name':'soft','layer':'suppress','soft_nms_sigma':0.5,'inputs':['d','s','first:3']},"
      "{'name':'each','layer':'suppress','inputs':['d','s','first:3']}]", .forward_only = true },
    /* Boxes that depend on variables, which get no gradient from their two readers. */
    { "crops_four", PM_SHAPE4(2, 9, 8, 4), "", false,
      "[{'name':'a','layer':'conv2d','filters':32,'kernel':3},"
      "{'name':'f','layer':'slice','size':[-1,1,3,32]},"
      "{'name':'r','layer':'reshape','shape':[0,-1,4]},{'name':'b','layer':'sigmoid'},"
      "{'name':'c','layer':'crop_and_resize','size':[5,3],'inputs':['a','b']},"
      "{'name':'g','layer':'global_pool'},"
      "{'name':'s','layer':'sensitive_crops','bins':2,'size':[6,4],'inputs':['a','b']},"
      "{'name':'d','layer':'fully_connected','units':32,'inputs':['s']},"
      "{'name':'e','layer':'reshape','shape':[0,1,1,32]},"
      "{'name':'h','layer':'add','inputs':['g','e']}]" },
    { "crops_odd", PM_SHAPE4(2, 9, 8, 4), "", false,
      "[{'name':'p','layer':'global_pool'},{'name':'q','layer':'reshape','shape':[0,4]},"
      "{'name':'n','layer':'argmax'},"
      "{'name':'r','layer':'reshape','shape':[0,-1,4],'inputs':['images']},"
      "{'name':'t','layer':'slice','size':[-1,5,4]},{'name':'b','layer':'sigmoid'},"
      "{'name':'a','layer':'conv2d','filters':18,'kernel':3,'inputs':['images']},"
      "{'name':'c','layer':'crop_and_resize','size':4,'inputs':['a','b','n']},"
      "{'name':'g','layer':'global_pool'},"
      "{'name':'s','layer':'sensitive_crops','bins':[1,2],'size':[3,6],'inputs':['a','b','n']},"
      "{'name':'d','layer':'fully_connected','units':18,'inputs':['s']},"
      "{'name':'e','layer':'reshape','shape':[0,1,1,18]},"
      "{'name':'h','layer':'add','inputs':['g','e']}]" },
    { "rotated_crops", PM_SHAPE4(2, 9, 8, 5), "", false,
      "[{'name':'p','layer':'global_pool'},{'name':'q','layer':'reshape','shape':[0,5]},"
      "{'name':'n','layer':'argmax'},"
      "{'name':'r','layer':'reshape','shape':[0,-1,5],'inputs':['images']},"
      "{'name':'t','layer':'slice','size':[-1,9,5]},{'name':'b','layer':'sigmoid'},"
      "{'name':'a','layer':'conv2d','filters':8,'kernel':3,'inputs':['images']},"
      "{'name':'c','layer':'rotated_crops','size':[4,3],'width':0.9,'inputs':['a','b']},"
      "{'name':'g','layer':'global_pool'},"
      "{'name':'o','layer':'conv2d','filters':3,'kernel':3,'inputs':['c']},"
      "{'name':'d','layer':'global_pool'},"
      "{'name':'v','layer':'conv2d','filters':3,'kernel':3,'inputs':['images']},"
      "{'name':'w','layer':'rotated_crops','size':[5,4],'inputs':['v','b','n']},"
      "{'name':'x','layer':'global_pool'},"
      "{'name':'e','layer':'concat','inputs':['g','d','x']}]" },
    { "anchors", PM_SHAPE4(1, 16, 16, 3), "", false,
      "[{'name':'a','layer':'conv2d','filters':4,'kernel':3,'stride':2},"
      "{'name':'m','layer':'multiscale_anchors','min_level':1,'max_level':1,"
      "'inputs':['images','a']},"
      "{'name':'g','layer':'grid_anchors','scales':[1],'aspect_ratios':[1],"
      "'inputs':['images','a']},"
      "{'name':'f','layer':'flexible_grid_anchors','base_sizes':[4],'aspect_ratios':[1],"
      "'height_stride':[2],'width_stride':[2],'inputs':['images','a']},"
      "{'name':'j','layer':'concat','axis':0,'inputs':['m','g','f']}]",
      .forward_only = true },
    { "merges_four", PM_SHAPE4(2, 5, 6, 4), "", false,
      "[{'name':'a','layer':'conv2d','filters':8,'kernel':3},"
      "{'name':'b','layer':'conv2d','filters':8,'kernel':1},"
      "{'name':'c','layer':'add','inputs':['a','b'],'activation':'relu6','scale':0.3},"
      "{'name':'d','layer':'concat','inputs':['a','b','c']},"
      "{'name':'e','layer':'multiply','inputs':['a','c']},"
      "{'name':'f','layer':'global_pool'},"
      "{'name':'g','layer':'multiply','inputs':['e','f']},"
      "{'name':'h','layer':'concat','inputs':['d','g']}]" },
    { "parts", PM_SHAPE4(2, 5, 6, 3), "", false,
      "[{'name':'a','layer':'conv2d','filters':12,'kernel':3},"
      "{'name':'b','layer':'split','parts':3},{'name':'c','layer':'add','inputs':['b:0','b:2']},"
      "{'name':'d','layer':'split','sizes':[1,3]},"
      "{'name':'e','layer':'concat','inputs':['d:1','d','d:1']}]" },
    { "merges_odd", PM_SHAPE4(2, 5, 6, 3), "", false,
      "[{'name':'a','layer':'conv2d','filters':7,'kernel':3},"
      "{'name':'b','layer':'conv2d','filters':7,'kernel':1},"
      "{'name':'c','layer':'add','inputs':['a','b'],'activation':'leaky_relu','slope':0.3},"
      "{'name':'d','layer':'concat','inputs':['a','c'],'axis':1},"
      "{'name':'e','layer':'multiply','inputs':['a','c']},"
      "{'name':'f','layer':'global_pool'},"
      "{'name':'g','layer':'multiply','inputs':['e','f']},"
      "{'name':'h','layer':'concat','inputs':['d','g','b'],'axis':1},"
      "{'name':'i','layer':'pad','pad':[1,2,3,0]},"
      "{'name':'j','layer':'slice','begin':[0,2,1,3],'size':[-1,9,5,4]},"
      "{'name':'k','layer':'parameter','shape':[2,9,5,4],'inputs':['images']},"
      "{'name':'l','layer':'add','inputs':['j','k']}]" },
    { "orders", PM_SHAPE4(2, 6, 5, 4), "", false,
      "[{'name':'a','layer':'conv2d','filters':8,'kernel':3},"
      "{'name':'b','layer':'transpose','perm':[0,2,1,3]},"
      "{'name':'c','layer':'reshape','shape':[0,5,6,2,4]},"
      "{'name':'d','layer':'transpose','perm':[0,1,2,4,3]},"
      "{'name':'e','layer':'transpose','perm':[3,1,0,4,2]},"
      "{'name':'f','layer':'reshape','shape':[2,-1,6]}]" },
    { "mirrored", PM_SHAPE4(2, 5, 7, 4), "", false,
      "[{'name':'a','layer':'conv2d','filters':8,'kernel':3},{'name':'b','layer':'flip'},"
      "{'name':'c','layer':'conv2d','filters':7,'kernel':3},{'name':'d','layer':'flip'},"
      "{'name':'e','layer':'flip','axis':-1}]" },
    { "places", PM_SHAPE4(2, 5, 7, 11), "", false, "[{'name':'a','layer':'argmax'}]",
      .forward_only = true },
    { "places_as_numbers", PM_SHAPE2(9, 150), "", false,
      "[{'name':'a','layer':'argmax'},{'name':'b','layer':'to_float','add':1}]",
      .forward_only = true },
    { "places_wide", PM_SHAPE2(9, 150), "", false, "[{'name':'a','layer':'argmax'}]",
      .forward_only = true },
    { "channels", PM_SHAPE4(3, 5, 4, 4), "", false,
      "[{'name':'a','layer':'conv2d','filters':8,'kernel':1},{'name':'b','layer':'prelu'},"
      "{'name':'c','layer':'scale'},{'name':'d','layer':'scale','beta':true},"
      "{'name':'e','layer':'scale','gamma':false,'beta':true,'axes':-1},"
      "{'name':'f','layer':'conv2d','filters':7,'kernel':1},{'name':'g','layer':'prelu'},"
      "{'name':'h','layer':'scale'},{'name':'i','layer':'scale','beta':true},"
      "{'name':'j','layer':'scale','gamma':false,'beta':true},"
      "{'name':'k','layer':'prelu','shared':true}]" },
    { "broadcasts", PM_SHAPE4(3, 5, 6, 4), "", false,
      "[{'name':'a','layer':'conv2d','filters':8,'kernel':3},"
      "{'name':'b','layer':'reduce_mean'},{'name':'c','layer':'reduce_sum','axes':[3]},"
      "{'name':'d','layer':'subtract','inputs':['a','b']},"
      "{'name':'e','layer':'maximum','inputs':['d','a']},"
      "{'name':'f','layer':'minimum','inputs':['e','c']},"
      "{'name':'g','layer':'multiply','inputs':['f','c']},"
      "{'name':'h','layer':'sigmoid','inputs':['a']},{'name':'i','layer':'exp'},"
      "{'name':'j','layer':'divide','inputs':['g','i']},"
      "{'name':'k','layer':'reduce_max','axes':[1]},"
      "{'name':'l','layer':'add','inputs':['j','k']},"
      "{'name':'m','layer':'reduce_min','axes':[-1]},"
      "{'name':'n','layer':'subtract','inputs':['a','m']}]" },
    { "reductions_long", PM_SHAPE2(2, 260), "", false,
      "[{'name':'a','layer':'reduce_max','axes':[1]},"
      "{'name':'b','layer':'fully_connected','units':300,'inputs':['images']},"
      "{'name':'c','layer':'reduce_min','axes':[1]},"
      "{'name':'d','layer':'reduce_mean','axes':[1],'inputs':['b']},"
      "{'name':'e','layer':'reduce_sum','axes':[0,1],'inputs':['b']},"
      "{'name':'f','layer':'concat','inputs':['a','c','d']},"
      "{'name':'g','layer':'divide','inputs':['f','e']},"
      "{'name':'h','layer':'fully_connected','units':6,'inputs':['b']},"
      "{'name':'i','layer':'subtract','inputs':['h','d']},"
      "{'name':'j','layer':'fully_connected','units':5,'inputs':['g']},"
      "{'name':'k','layer':'concat','inputs':['i','j']}]" },
    { "resized_four", PM_SHAPE4(2, 5, 6, 4), "", false,
      "[{'name':'a','layer':'conv2d','filters':8,'kernel':3},"
      "{'name':'b','layer':'resize','size':[9,13],'coordinates':'align_corners'},"
      "{'name':'c','layer':'resize','scale':[0.5,0.7],'method':'nearest'},"
      "{'name':'d','layer':'pad','pad':[1,0,2,1],'mode':'reflect'},"
      "{'name':'e','layer':'pad','pad':[0,1,1,2],'mode':'edge'},"
      "{'name':'f','layer':'pad','pad':[1,1,1,1],'value':0.5}]" },
    { "resized_odd", PM_SHAPE4(2, 5, 6, 4), "", false,
      "[{'name':'a','layer':'conv2d','filters':7,'kernel':3},"
      "{'name':'b','layer':'resize','size':[9,13],'method':'cubic'},"
      "{'name':'c','layer':'resize','scale':0.6,'coordinates':'asymmetric'}]" },
    { "attention", PM_SHAPE4(2, 5, 7, 8), "", false,
      "[{'name':'a','layer':'conv2d','filters':12,'kernel':1},"
      "{'name':'n','layer':'layer_norm'},{'name':'b','layer':'reshape','shape':[0,35,12]},"
      "{'name':'c','layer':'reshape','shape':[0,35,12],'inputs':['a']},"
      "{'name':'d','layer':'matmul','transpose_b':true,'inputs':['b','c']},"
      "{'name':'e','layer':'softmax'},{'name':'f','layer':'matmul','inputs':['e','c']},"
      "{'name':'g','layer':'matmul','transpose_a':true,'inputs':['c','f']},"
      "{'name':'h','layer':'matmul','transpose_a':true,'transpose_b':true,'inputs':['g','f']},"
      "{'name':'i','layer':'group_norm','groups':5},{'name':'j','layer':'reshape','shape':[0,-1]},"
      "{'name':'k','layer':'fully_connected','units':9}]" },
    { "neighbours", PM_SHAPE4(2, 4, 5, 3), "", false,
      "[{'name':'a','layer':'conv2d','filters':13,'kernel':1},"
      "{'name':'b','layer':'local_response_norm','radius':4,'alpha':0.3,'beta':0.75},"
      "{'name':'c','layer':'local_response_norm'}]" },
    { "quantized", PM_SHAPE4(2, 9, 10, 3), "", false,
      "[{'name':'a','layer':'quantized_conv2d','filters':8,'kernel':3,'stride':2,'bias':false,"
      "'batch_norm':true,'activation':'relu6'},{'name':'b','layer':'fake_quant'},"
      "{'name':'c','layer':'quantized_conv2d','filters':0,'bias':false,'batch_norm':true},"
      "{'name':'d','layer':'fake_quant','min':-6,'delay':2},"
      "{'name':'e','layer':'quantized_conv2d','filters':7,'kernel':1,'bias':false,"
      "'batch_norm':true,'scale':false,'center':false,'frozen':true},{'name':'f','layer':'fake_"
      "quant'},"
      "{'name':'g','layer':'quantized_conv2d','filters':5,'kernel':1,'activation':'relu'},"
      "{'name':'h','layer':'quantized_conv2d','filters':6,'flat':true}]" },
    { "quantized_eval", PM_SHAPE4(2, 5, 4, 3), "", false,
      "[{'name':'a','layer':'quantized_conv2d','filters':8,'kernel':3,'bias':false,'batch_norm':"
      "true},"
      "{'name':'b','layer':'fake_quant'},{'name':'c','layer':'quantized_conv2d','filters':0,"
      "'bias':false,'batch_norm':true,'activation':'relu6'},{'name':'d','layer':'fake_quant'},"
      "{'name':'e','layer':'quantized_conv2d','filters':6,'kernel':1}]",
      .forward_only = true },
    { "many_groups", PM_SHAPE4(1, 260, 257, 65), "", false, /* over 65,535 workgroups of 64 */
      "[{'name':'a','layer':'relu'},{'name':'b','layer':'global_pool'}]", .forward_only = true },
};

/* ---- nets ------------------------------------------------------------------------------- */

static struct cJSON *parse(const char *text)
{
    char *copy = pm_strdup(text);
    struct cJSON *list;

    for (char *s = copy; *s; s++)
        if (*s == '\'')
            *s = '"';
    list = cJSON_Parse(copy);
    pm_free(copy);
    return list;
}

static int build(void *ctx, int batch, int height, int width, struct pm_net **out)
{
    const struct pm_verify_net *c = ctx;
    struct pm_net *net = pm_net_create();
    struct pm_shape shape = c->images;
    struct pm_heads heads = { 0 };
    struct cJSON *list = parse(c->layers);
    int err = PM_OK;

    (void)height, (void)width;
    shape.dim[0] = batch;
    PM_TRY(pm_net_from_json(net, pm_net_input(net, "images", shape, PM_F32), list, c->name,
                            &heads));
    if (!net->error)
        pm_verify_add_loss(net, c, pm_heads_main(&heads));
    PM_TRY(net->error);
    *out = net, net = NULL;
out:
    cJSON_Delete(list);
    pm_net_destroy(&net);
    return err;
}

static const struct pm_verify_net *case_called(const char *name)
{
    for (size_t i = 0; i < PM_COUNT(cases); i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    assert(!"unknown case");
    return NULL;
}

bool pm_verify_case(size_t i, struct pm_verify_source *out)
{
    /* Most plans keep transposed copies of weights. Without them, data gradients of convolutions
     * are other variants. */
    const bool transposing = i == PM_COUNT(cases);
    const struct pm_verify_net *c;

    if (i > PM_COUNT(cases))
        return false;
    c = transposing ? case_called("convolutions_wide") : &cases[i];
    *out = (struct pm_verify_source){
        .name = transposing ? "convolutions_transposing" : c->name,
        .build = build,
        .ctx = (void *)c,
        .batch = c->images.dim[0],
        .options = { .name = c->name,
                     .train = !c->forward_only,
                     .first_example = 5,
                     .loss_share = 0.25f,
                     .micro_batches = 1,
                     .slots = 1,
                     .no_copies = transposing },
    };
    return true;
}
