/* batch_norm_update: moving averages of all layers of a step. The table has two rows of four words
 * for each chunk of at most MOVING_CHUNK channels of a layer:
 *     first floats of mean and variance in `moments`, of moving mean and variance in `values`
 *     channels, rate and factor as the bits of floats, 0 */
#define MOVING_CHUNK 64
struct batch_norm_update_params {
    int chunks;
};
