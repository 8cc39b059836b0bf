/* mining: finds the k-th largest of many losses by digits, the highest first. A call is a sequence
 * of dispatches. The first clears the counts. Each of the following counts one digit: first the
 * digits of the losses' bits, then those of the rows' numbers, where the lowest comes first. It
 * counts the rows whose previous digits equal those of the k-th. The last dispatch compares all
 * rows with the k-th. Each dispatch recomputes the digit that the previous one found. All numbers
 * are integers, so the order of additions does not matter. Groups have 256 lanes. */
layout(constant_id = 3) const uint PASS = 0; /* digit to count; past the last digit: none */

/* work: counts [digits][MINING_BINS], then the state before each digit [digits][3]. */
struct Found {
    uint key, row; /* digits found so far, the rest is 0 */
    uint rest;     /* rows wanted among those with these digits */
};
shared uint sums[256];
shared uint found_bin, found_rest;

uint mining_key(float loss)
{
    uint bits = floatBitsToUint(loss), magnitude = bits & 0x7fffffffu;

    if (magnitude > 0x7f800000u) /* NaN is largest; otherwise the loss would hide it */
        return 0xffffffffu;
    return bits > 0x80000000u ? 0x80000000u - magnitude : 0x80000000u + magnitude;
}

uint key_shift(uint digit)
{
    return digit == 0 ? 21 : digit == 1 ? 10 : 0;
}

uint row_shift(uint digit)
{
    return MINING_BITS * (MINING_KEY_DIGITS + uint(p.index_digits) - 1 - digit);
}

/* Returns a digit. Larger digits come earlier in the order. */
uint digit_of(uint digit, uint key, uint row)
{
    return digit < MINING_KEY_DIGITS ? (key >> key_shift(digit)) & (digit == 2 ? 1023 : 2047)
                                     : 2047 - ((row >> row_shift(digit)) & 2047);
}

bool agrees(Found f, uint digit, uint key, uint row)
{
    if (digit == 0)
        return true;
    if (digit < MINING_KEY_DIGITS)
        return key >> key_shift(digit - 1) == f.key >> key_shift(digit - 1);
    return key == f.key && (digit == MINING_KEY_DIGITS ||
                            row >> row_shift(digit - 1) == f.row >> row_shift(digit - 1));
}

uint digits()
{
    return MINING_KEY_DIGITS + uint(p.index_digits);
}

/* Finds, in the digit's counts, the bin of the rest-th value from above. */
void search(uint digit, uint rest)
{
    uint lane = gl_LocalInvocationID.x, top = MINING_BINS - 1 - lane * (MINING_BINS / 256), sum = 0;

    for (uint i = 0; i < MINING_BINS / 256; i++)
        sum += work.v[digit * MINING_BINS + top - i];
    sums[lane] = sum;
    barrier();
    if (lane == 0) {
        uint above = 0, at = 0;

        for (; at < 255 && above + sums[at] < rest; at++)
            above += sums[at];
        uint bin = MINING_BINS - 1 - at * (MINING_BINS / 256);
        for (uint i = 1; i < MINING_BINS / 256; i++, bin--) {
            uint here = work.v[digit * MINING_BINS + bin];

            if (above + here >= rest)
                break;
            above += here;
        }
        found_bin = bin;
        found_rest = rest - above;
    }
    barrier();
}

/* Returns the state before digit PASS. The first group stores it for the next dispatch. */
Found find()
{
    uint before = digits() * MINING_BINS;
    Found f = Found(0, 0, uint(keep.v[min(step.step, uint(p.steps))]));

    if (PASS > 0) {
        uint digit = PASS - 1;

        f = Found(work.v[before + digit * 3], work.v[before + digit * 3 + 1],
                  work.v[before + digit * 3 + 2]);
        search(digit, f.rest);
        if (digit < MINING_KEY_DIGITS)
            f.key |= found_bin << key_shift(digit);
        else
            f.row |= (2047 - found_bin) << row_shift(digit);
        f.rest = found_rest;
    }
    if (PASS < digits() && gl_WorkGroupID.x == 0 && gl_LocalInvocationID.x == 0) {
        work.v[before + PASS * 3] = f.key;
        work.v[before + PASS * 3 + 1] = f.row;
        work.v[before + PASS * 3 + 2] = f.rest;
    }
    return f;
}
