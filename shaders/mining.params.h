/* mining: chooses the rows that count in a loss. Digits have MINING_BITS bits; a loss has
 * MINING_KEY_DIGITS digits. */
#define MINING_BITS 11
#define MINING_BINS 2048
#define MINING_KEY_DIGITS 3

struct mining_params {
    int rows;
    int steps;        /* keep has steps + 1 entries */
    int index_digits; /* digits of the last row's number */
};
