/* multiply: a [n][pixels][c]; b the same, or [n][c] if broadcast. */
struct multiply_params {
    int n, pixels, c;
    int broadcast;
};
