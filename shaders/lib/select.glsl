/* Takes the best SELECT of many candidates, again and again, in the order of falling keys; equal
 * keys in the order of their numbers. One workgroup of LANES lanes works together; all lanes call
 * select_next. The including shader defines candidate_key(i): 0 if i is not a candidate.
 *
 * The SELECT-th best is found by digits of 8 bits, first those of the key, then those of the
 * number. Its betters go to shared memory and are sorted there (bitonic). 11 KiB are used. */
const uint LANES = 128, SELECT = 256;
shared uint select_words[SELECT * 8]; /* counts of a digit; the shader may use it between calls */
shared uint select_key[SELECT], select_at[SELECT];
shared uint select_bin, select_rest, select_here, select_count;

uint candidate_key(uint i);

uint score_key(uint bits)
{
    uint magnitude = bits & 0x7fffffffu;

    if (magnitude > 0x7f800000u)
        return 0; /* NaN is never a candidate */
    return bits > 0x80000000u ? 0x80000000u - magnitude : 0x80000000u + magnitude;
}

/* Order of pairs (key, ~number). */
bool before(uvec2 a, uvec2 b)
{
    return a.x > b.x || (a.x == b.x && a.y > b.y);
}

uint digit_of(uvec2 pair, uint digit)
{
    return ((digit < 4 ? pair.x : pair.y) >> (24 - 8 * (digit & 3))) & 0xffu;
}

/* Returns the pair with everything after its first `digits` digits set to 0. */
uvec2 prefix_of(uvec2 pair, uint digits)
{
    uint keep = digits & 3u, mask = keep == 0 ? 0u : 0xffffffffu << (32 - 8 * keep);

    return digits < 4 ? uvec2(pair.x & mask, 0) : digits == 4 ? uvec2(pair.x, 0)
                                                              : uvec2(pair.x, pair.y & mask);
}

/* Counts one digit of the candidates after `last` that agree with `found` in the digits before. */
void count_digit(uint count, uvec2 last, uvec2 found, uint digit)
{
    uint lane = gl_LocalInvocationID.x;

    for (uint i = lane; i < 256; i += LANES)
        select_words[i] = 0;
    barrier();
    for (uint i = lane; i < count; i += LANES) {
        uvec2 pair = uvec2(candidate_key(i), ~i);

        if (pair.x != 0 && before(last, pair) && prefix_of(pair, digit) == found)
            atomicAdd(select_words[digit_of(pair, digit)], 1);
    }
    barrier();
}

/* Returns the last pair to take: all that are not after it are at most SELECT. */
uvec2 find_cut(uint count, uvec2 last)
{
    uvec2 found = uvec2(0);
    uint rest = SELECT;

    for (uint digit = 0; digit < 8; digit++) {
        count_digit(count, last, found, digit);
        if (gl_LocalInvocationID.x == 0) {
            uint bin = 255, above = 0;

            for (; bin > 0 && above + select_words[bin] < rest; bin--)
                above += select_words[bin];
            select_bin = bin;
            select_rest = rest - above;
            select_here = select_words[bin];
        }
        barrier();
        uint place = select_bin << (24 - 8 * (digit & 3));

        found |= digit < 4 ? uvec2(place, 0) : uvec2(0, place);
        rest = select_rest;
        if (select_here <= rest)
            break;
    }
    return found;
}

void sort_selected()
{
    uint lane = gl_LocalInvocationID.x;

    for (uint size = 2; size <= SELECT; size *= 2)
        for (uint stride = size / 2; stride > 0; stride /= 2) {
            uint a = 2 * lane - (lane & (stride - 1)), b = a + stride;
            uvec2 x = uvec2(select_key[a], ~select_at[a]), y = uvec2(select_key[b], ~select_at[b]);

            if (((a & size) == 0) ? before(y, x) : before(x, y)) {
                select_key[a] = y.x, select_at[a] = ~y.y;
                select_key[b] = x.x, select_at[b] = ~x.y;
            }
            barrier();
        }
}

/* Stores the next candidates after `last` (key, ~number; all ones at first) in select_key and
 * select_at, and returns their number: SELECT, or fewer if no others are left. */
uint select_next(uint count, uvec2 last)
{
    uint lane = gl_LocalInvocationID.x;
    uvec2 cut = find_cut(count, last);

    if (lane == 0)
        select_count = 0;
    for (uint i = lane; i < SELECT; i += LANES)
        select_key[i] = 0, select_at[i] = 0xffffffffu;
    barrier();
    for (uint i = lane; i < count; i += LANES) {
        uvec2 pair = uvec2(candidate_key(i), ~i);

        if (pair.x != 0 && before(last, pair) && !before(cut, pair)) {
            uint at = atomicAdd(select_count, 1);

            select_key[at] = pair.x;
            select_at[at] = i;
        }
    }
    barrier();
    sort_selected();
    return select_count;
}
