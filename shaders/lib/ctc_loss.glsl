/* ctc_loss: the states of an example. Twin of the functions of the same names in
 * src/layers/ctc_loss.c. Include it after the push block, which has logits, lse, labels,
 * label_lengths, lengths (absent if HAS_LENGTHS is false) and ctc_loss_params p. */
const uint MOST_STATES = 1023; /* 2 * PM_CTC_MOST_SYMBOLS + 1 */
const float NEVER = -1e30;     /* the logarithm of 0, after any number of additions */

uint row_states()
{
    return 2 * uint(p.most) + 1;
}

uint symbols_of(uint example)
{
    return uint(clamp(label_lengths.v[example], 0, p.most));
}

uint steps_of(uint example)
{
    int steps = p.t;

    if (HAS_LENGTHS)
        steps = clamp(lengths.v[example], 0, p.t);
    return uint(steps);
}

/* The class of a state. An invalid label gives a class that exists; the loss is NaN then. */
uint class_of(uint example, uint s)
{
    if (s % 2 == 0)
        return uint(p.blank);
    return uint(clamp(labels.v[example * uint(p.most) + s / 2], 0, p.c - 1));
}

/* Whether a path may go from state s - 2 to s: between different symbols. */
bool may_skip(uint example, uint s)
{
    return s % 2 == 1 && s >= 3 && class_of(example, s) != class_of(example, s - 2);
}

/* t is limited because of the loops described at pm_next_row. */
float log_prob(uint example, uint t, uint s)
{
    uint row = example * uint(p.t) + min(t, uint(p.t) - 1u);

    return logits.v[row * uint(p.c) + class_of(example, s)] - lse.v[row];
}

float log_add(float a, float b, float c)
{
    float most = max(a, max(b, c));

    return most + log(exp(a - most) + exp(b - most) + exp(c - most));
}
