/* mining: which rows count in a loss. Digits of MINING_BITS bits, MINING_KEY_DIGITS of them in a loss. */
#define MINING_BITS 11
#define MINING_BINS 2048
#define MINING_KEY_DIGITS 3

struct mining_params {
    int rows;
    int steps;        /* keep has steps + 1 numbers */
    int weighted;     /* 1: there are weights */
    int index_digits; /* of the last row's number */
};
