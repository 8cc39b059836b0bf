/* Rows of a chunk whose moments calls hand over: PM_MOMENT_ROWS of kernel.h. */
#ifndef MOMENTS_PARAMS_H
#define MOMENTS_PARAMS_H

#define MOMENT_ROWS 64

#endif
