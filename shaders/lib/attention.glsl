/* Rows of an attention decoder; src/layers/attention.h is the twin. The including shader has the
 * push block with `attention_params p`. */
const int ATTENTION_START = 0, ATTENTION_END = 1;
const float ATTENTION_NEVER = -1e30;

uint attention_place(uint row, int step)
{
    return row * uint(p.steps) + uint(step);
}

/* Place of the step before; at the first step, that of the first. */
uint attention_before(uint row)
{
    return attention_place(row, max(p.at, 1) - 1);
}

/* The row reads the sequence of this example. */
uint attention_example(uint row)
{
    return row / uint(p.beams);
}

/* The row of a beam of the row's example. */
uint attention_beam(uint row, int beam)
{
    return attention_example(row) * uint(p.beams) + uint(clamp(beam, 0, p.beams - 1));
}
