/* flip: x and y [blocks][size][c]. */
struct flip_params { int blocks, size, c; };
