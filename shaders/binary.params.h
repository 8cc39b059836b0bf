/* binary: y [d0]..[d5], row-major. a's and b's strides are 0 along axes that repeat. */
struct binary_params {
    int count, kind;
    int d[6], a[6], b[6];
};
