/* detection_tiles: prediction on large photos that are cut into tiles (predict.tile). */
#ifndef PM_DETECTION_TILES_H
#define PM_DETECTION_TILES_H

#include "data/picture_tiles.h"
#include "tasks/detection/detection.h"

extern const struct pm_opt pm_detection_predict_opts[]; /* the section "predict" */
/* Reads and checks the section. PM_ECONFIG. */
int pm_detection_read_tiling(const struct pm_config *c, struct pm_tiling *out);

/* Hooks of pm_task_row. */
int pm_detection_tiling(const struct pm_task *t, struct pm_tiling *out);
struct pm_tiled *pm_detection_tiled_create(const struct pm_task *t,
                                           const struct pm_tile_grid *grid);
void pm_detection_tiled_destroy(struct pm_tiled **p);
int pm_detection_tiled_add(struct pm_tiled *p, struct pm_frame frame, const void *const *outputs,
                           size_t tile);
int pm_detection_tiled_present(struct pm_tiled *p, const char *where,
                               const struct pm_image8 *picture, struct cJSON *object,
                               struct pm_drawings *drawings);

/* detection_present.c: writes and draws the detections of a picture, sorted by falling score, as
 * pm_detection_present does. side: longer side of the parts that people look at, as for
 * pm_draw_boxes_at, in pixels of the picture; 0: they look at the whole. */
int pm_detection_show(const struct pm_task *t, const struct pm_detection_found *found,
                      const struct pm_image8 *picture, int side, struct cJSON *object,
                      struct pm_drawings *drawings);

#endif
