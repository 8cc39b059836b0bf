/* transpose_weights: t [tap][k][c] = w [tap][c][k] for several variables. The work is cut into
 * squares of TRANSPOSE_SQUARE x TRANSPOSE_SQUARE of one tap. The table has two rows of four words
 * for each variable:
 *     its first square, its first float in w, its first float in t, 0
 *     c, k, 0, 0 */
#define TRANSPOSE_SQUARE 32
struct transpose_weights_params {
    int weights;
    int squares; /* of all weights */
};
