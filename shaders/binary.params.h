/* binary: y [d0]..[d5], row-major. a's and b's strides are 0 along axes that repeat. want: 1 for
 * da, 2 for db. */
struct binary_params {
    int count, kind, want;
    int d[6], a[6], b[6];
};
