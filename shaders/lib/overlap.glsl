/* Overlap of boxes, vec4(ymin, xmin, ymax, xmax). Twin of src/layers/suppress_rows.c: float32
 * operations in the same order without contraction. */

/* Returns the box with its corners in order. */
vec4 box_ordered(vec4 b)
{
    return vec4(min(b.xy, b.zw), max(b.xy, b.zw));
}

float box_area(vec4 b)
{
    precise float area = (b.z - b.x) * (b.w - b.y);
    return area;
}

/* Stores intersection and union of two ordered boxes. */
void box_overlap(vec4 a, vec4 b, out float inner, out float joined)
{
    precise float h = max(min(a.z, b.z) - max(a.x, b.x), 0.0);
    precise float w = max(min(a.w, b.w) - max(a.y, b.y), 0.0);
    precise float shared_area = h * w;
    precise float sum = box_area(a) + box_area(b);

    inner = shared_area;
    precise float rest = sum - shared_area;
    joined = rest;
}

/* Returns whether inner / joined, rounded to the nearest float, is above limit >= 0. Vulkan allows
 * division an error of 2.5 ulp. Close to the limit this therefore compares integers: the quotient
 * rounds above the limit exactly if it is above the middle of the limit and the next float. (It
 * cannot equal the middle, whose 25 bits no float times another has.) */
bool quotient_above(float inner, float joined, float limit)
{
    if (!(inner > 0.0))
        return false;
    float q = inner / joined;
    if (!(abs(q - limit) <= limit * 1e-6))
        return q > limit;
    uint c = floatBitsToUint(inner), b = floatBitsToUint(joined), l = floatBitsToUint(limit);
    int shift = int(c >> 23) - int(b >> 23) - int(l >> 23) + 151;
    uint mantissa = (c & 0x7fffffu) | 0x800000u;
    uint high, low;

    umulExtended(2u * ((l & 0x7fffffu) | 0x800000u) + 1u, (b & 0x7fffffu) | 0x800000u, high, low);
    uint top = mantissa >> (32 - shift), rest = mantissa << shift; /* shift is 23 to 27 */
    return top > high || (top == high && rest > low);
}

/* The exact product of two positive finite floats, neither below the least normal one: exponent and
 * 48 bits, which compare like the products. */
uvec3 exact_product(float a, float b)
{
    uint x = floatBitsToUint(a), y = floatBitsToUint(b), high, low;
    uint exponent = (x >> 23) + (y >> 23);
    uint m = (x & 0x7fffffu) | 0x800000u, n = (y & 0x7fffffu) | 0x800000u;

    umulExtended(m, n, high, low);
    if (high >= 0x8000u)
        return uvec3(exponent + 1, high, low);
    umulExtended(2u * m, n, high, low); /* not a shift over two words, which oclgrind lacks */
    return uvec3(exponent, high, low);
}

/* Whether a / b is above c / d, without rounding. The numbers are those of exact_product. */
bool quotient_exceeds(float a, float b, float c, float d)
{
    uvec3 x = exact_product(a, d), y = exact_product(c, b);

    return x.x != y.x ? x.x > y.x : x.y != y.y ? x.y > y.y : x.z > y.z;
}

bool boxes_exceed(vec4 a, vec4 b, float limit)
{
    float inner, joined;

    box_overlap(a, b, inner, joined);
    return quotient_above(inner, joined, limit);
}
