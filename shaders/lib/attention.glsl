/* Rows of an attention decoder; src/layers/attention.h is the twin. The including shader has the
 * push block with `attention_params p`. */
const int ATTENTION_START = 0, ATTENTION_END = 1;
const float ATTENTION_NEVER = -1e30;

uint attention_place(uint row, int step)
{
    return row * uint(p.steps) + uint(step);
}

/* The example whose sequence the row reads. */
uint attention_example(uint row)
{
    return row / uint(p.beams);
}
