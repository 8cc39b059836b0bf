/* class_masks: the masks of `per` detections of each image, with `pixels` pixels of `c` channels;
 * one channel is that of all classes. */
struct class_masks_params { int images, per, pixels, c; };
