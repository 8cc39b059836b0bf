/* rotated_clip: intersection and union of two rotated boxes. This text is C and GLSL. src/layers/
 * rotated_overlap.c includes it for float and for double, shaders for float.
 *
 * A box has the centre (y, x), the sides h and w and an angle in radians, clockwise on the screen,
 * where y points down: w lies along (cos, sin) in x and y, h along (-sin, cos). Both axes have the
 * same unit. Sides are 1e-9 to 1e9 in it.
 *
 * Method. One box, the frame, is put at the origin with its sides along the axes. Let every point
 * of the other box's outline move to the nearest point of the frame: x becomes X, the x limited to
 * the frame, and y becomes Y. The moved outline encloses the same points of the frame's inside as
 * the outline does, because no point of it passes an inner point of the frame. So the intersection
 * is the sum of the integrals of Y dX along the four edges. No step decides which corners belong to
 * the intersection: a small error of a coordinate changes the area a little, also where edges and
 * corners coincide. Polygon clippers lose whole parts there.
 *
 * Precision. For a box of 1000 x 1, an error of 1e-7 of the angle or of the centres' distance is
 * an error of 1e-4 of the short side. Sines, cosines and the distance are therefore pairs of
 * numbers, high + low, until they refer to the frame (Dekker 1971).
 *
 * Results are the same bits on all devices: there are additions, subtractions and products only,
 * which all devices round alike, integers, and no fused multiply-add. overlap(a, b) and
 * overlap(b, a) are the same bits. The intersection of two equal boxes is exactly their union. */
#ifndef PM_REAL
#define PM_REAL float
#define PM_OF(name) name
#define PM_STRUCT(name) name
#define PM_FUNCTION
#define PM_EXACT precise
#define PM_SPLITTER 4097.0

float rotated_inverse_guess(float v)
{
    return uintBitsToFloat(0x7ef311c7u - floatBitsToUint(v));
}
#endif

/* ---- pairs of numbers ---------------------------------------------------------------------- */

struct PM_OF(pair) {
    PM_REAL high, low;
};

/* a + b without error. */
PM_FUNCTION PM_STRUCT(pair) PM_OF(two_sum)(PM_REAL a, PM_REAL b)
{
    PM_STRUCT(pair) y;
    PM_EXACT PM_REAL sum = a + b;
    PM_EXACT PM_REAL part = sum - a;
    PM_EXACT PM_REAL rest = sum - part;
    PM_EXACT PM_REAL low = (a - rest) + (b - part);

    y.high = sum;
    y.low = low;
    return y;
}

/* The upper half of a number's bits. */
PM_FUNCTION PM_REAL PM_OF(upper_half)(PM_REAL a)
{
    PM_EXACT PM_REAL t = PM_SPLITTER * a;
    PM_EXACT PM_REAL rest = t - a;
    PM_EXACT PM_REAL high = t - rest;

    return high;
}

/* a * b without error. */
PM_FUNCTION PM_STRUCT(pair) PM_OF(two_product)(PM_REAL a, PM_REAL b)
{
    PM_STRUCT(pair) y;
    PM_REAL ah = PM_OF(upper_half)(a), bh = PM_OF(upper_half)(b);
    PM_EXACT PM_REAL al = a - ah;
    PM_EXACT PM_REAL bl = b - bh;
    PM_EXACT PM_REAL product = a * b;
    PM_EXACT PM_REAL low = ((ah * bh - product) + ah * bl + al * bh) + al * bl;

    y.high = product;
    y.low = low;
    return y;
}

PM_FUNCTION PM_STRUCT(pair) PM_OF(pair_add)(PM_STRUCT(pair) a, PM_STRUCT(pair) b)
{
    PM_STRUCT(pair) t = PM_OF(two_sum)(a.high, b.high);
    PM_EXACT PM_REAL low = t.low + (a.low + b.low);

    return PM_OF(two_sum)(t.high, low);
}

PM_FUNCTION PM_STRUCT(pair) PM_OF(pair_multiply)(PM_STRUCT(pair) a, PM_STRUCT(pair) b)
{
    PM_STRUCT(pair) t = PM_OF(two_product)(a.high, b.high);
    PM_EXACT PM_REAL low = t.low + (a.high * b.low + a.low * b.high);

    return PM_OF(two_sum)(t.high, low);
}

/* a b + c d, rounded once. If a b = -c d, the result is 0. */
PM_FUNCTION PM_REAL PM_OF(product_sum)(PM_STRUCT(pair) a, PM_STRUCT(pair) b, PM_STRUCT(pair) c,
                                       PM_STRUCT(pair) d)
{
    PM_STRUCT(pair) p = PM_OF(two_product)(a.high, b.high);
    PM_STRUCT(pair) q = PM_OF(two_product)(c.high, d.high);
    PM_STRUCT(pair) t = PM_OF(two_sum)(p.high, q.high);
    PM_EXACT PM_REAL ab = a.high * b.low + a.low * b.high;
    PM_EXACT PM_REAL cd = c.high * d.low + c.low * d.high;
    PM_EXACT PM_REAL low = (p.low + q.low) + (ab + cd);
    PM_EXACT PM_REAL sum = t.high + (t.low + low);

    return sum;
}

/* ---- boxes --------------------------------------------------------------------------------- */

/* A box with half of its sides, and cosine and sine of its angle as pairs. */
struct PM_OF(rotated) {
    PM_REAL y, x, h, w, c, c_low, s, s_low;
};

PM_FUNCTION PM_STRUCT(pair) PM_OF(pair_of)(PM_REAL high, PM_REAL low)
{
    PM_STRUCT(pair) y;

    y.high = high;
    y.low = low;
    return y;
}

PM_FUNCTION PM_REAL PM_OF(rotated_area)(PM_STRUCT(rotated) a)
{
    PM_EXACT PM_REAL area = 4.0f * (a.h * a.w);

    return area;
}

/* A box whose points are all within this distance of its centre: half of the diagonal, not less. */
PM_FUNCTION PM_REAL PM_OF(rotated_reach)(PM_STRUCT(rotated) a)
{
    PM_REAL longer = a.h > a.w ? a.h : a.w, shorter = a.h > a.w ? a.w : a.h;
    /* sqrt(1 + v^2) <= 1 + v^2 / 2 and <= 1 + 0.4143 v for v = shorter / longer. */
    PM_EXACT PM_REAL reach = (longer + 0.41422f * shorter) * 1.000001f;

    return reach;
}

/* Whether all corners of a box are in 0..1 along y and in 0..width along x, or beyond by at most
 * `border`. */
PM_FUNCTION bool PM_OF(rotated_inside)(PM_STRUCT(rotated) a, PM_REAL width, PM_REAL border)
{
    PM_REAL c = a.c < 0.0f ? -a.c : a.c, s = a.s < 0.0f ? -a.s : a.s;
    PM_EXACT PM_REAL tall = a.h * c + a.w * s;
    PM_EXACT PM_REAL wide = a.h * s + a.w * c;
    PM_EXACT PM_REAL top = a.y - tall;
    PM_EXACT PM_REAL left = a.x - wide;
    PM_EXACT PM_REAL bottom = a.y + tall;
    PM_EXACT PM_REAL right = a.x + wide;
    PM_EXACT PM_REAL lowest = 1.0f + border;
    PM_EXACT PM_REAL rightmost = width + border;

    return top >= -border && left >= -border && bottom <= lowest && right <= rightmost;
}

/* Whether two circles are apart: dy, dx: the distance of their centres; reach: the sum of their
 * radii. True if a number is NaN. */
PM_FUNCTION bool PM_OF(circles_apart)(PM_REAL dy, PM_REAL dx, PM_REAL reach)
{
    PM_EXACT PM_REAL square = dy * dy + dx * dx;
    PM_EXACT PM_REAL limit = reach * reach * 1.000001f;

    return !(square <= limit);
}

/* Whether the boxes are too far from each other to overlap. Boxes that overlap never are. */
PM_FUNCTION bool PM_OF(rotated_apart)(PM_STRUCT(rotated) a, PM_STRUCT(rotated) b)
{
    return PM_OF(circles_apart)(a.y - b.y, a.x - b.x,
                                PM_OF(rotated_reach)(a) + PM_OF(rotated_reach)(b));
}

/* Whether two boxes surely overlap by no more than limit, 0 to 1. dy, dx: the distance d of their
 * centres; reach, area: of one box, reach_b, area_b: of the other. True if a number is NaN.
 * The overlap is at most the quotient of the areas. If it is above t >= 1/2, then d < 2 (1 - t)
 * reach: let d have the part px > 0 along the half side w of box A. By symmetry, half of B lies
 * beyond px, where A has the share (1 - px / w) / 2 of its area. So the intersection is at most
 * (1 - px / (2 w)) of the larger area. t is the limit less the error of an overlap. */
PM_FUNCTION bool PM_OF(overlap_below)(PM_REAL dy, PM_REAL dx, PM_REAL reach, PM_REAL reach_b,
                                      PM_REAL area, PM_REAL area_b, PM_REAL limit)
{
    PM_EXACT PM_REAL t = limit - 1e-4f;
    PM_REAL least = reach < reach_b ? reach : reach_b;
    PM_EXACT PM_REAL near = (2.0f - 2.0f * t) * least;
    PM_EXACT PM_REAL far = reach + reach_b;
    PM_EXACT PM_REAL share = (area > area_b ? area : area_b) * t;

    return PM_OF(circles_apart)(dy, dx, t < 0.5f ? far : near) ||
           !((area > area_b ? area_b : area) >= share);
}

/* 1 / v for v >= 1e-20. Vulkan's division may differ between devices. */
PM_FUNCTION PM_REAL PM_OF(rotated_inverse)(PM_REAL v)
{
    PM_EXACT PM_REAL y = PM_OF(rotated_inverse_guess)(v); /* 12 % off; squared by each step */

    y = y * (2.0f - v * y);
    y = y * (2.0f - v * y);
    y = y * (2.0f - v * y);
    y = y * (2.0f - v * y);
    return y;
}

/* ---- the integral -------------------------------------------------------------------------- */

PM_FUNCTION PM_REAL PM_OF(limited)(PM_REAL v, PM_REAL most)
{
    PM_REAL low = v > -most ? v : -most;

    return low < most ? low : most;
}

/* The integral of Y dX along an edge from x0 to x1 >= x0, whose y runs from low to high >= low in
 * either direction. y is that of the part of the edge with x in -w..w; length is the part's. per_y
 * is the change of x for a change of y. h: Y is y limited to -h..h. */
PM_FUNCTION PM_REAL PM_OF(edge_integral)(PM_REAL length, PM_REAL low, PM_REAL high, PM_REAL per_y,
                                         PM_REAL h)
{
    PM_EXACT PM_REAL up = high - h;
    PM_EXACT PM_REAL down = -h - low;
    PM_EXACT PM_REAL above = up * per_y;
    PM_EXACT PM_REAL below = down * per_y;

    above = above < length ? above : length;
    above = low < h ? above : length;
    above = up > 0.0f ? above : 0.0f;
    below = below < length ? below : length;
    below = high > -h ? below : length;
    below = down > 0.0f ? below : 0.0f;
    PM_EXACT PM_REAL between = length - above - below;
    PM_EXACT PM_REAL middle = (PM_OF(limited)(low, h) + PM_OF(limited)(high, h)) * 0.5f;
    PM_EXACT PM_REAL sum = h * (above - below) + middle * (between > 0.0f ? between : 0.0f);

    return sum;
}

/* An edge that is rather flat: y grows by slope with x, slope 0 to 1, from y0 at x0. */
PM_FUNCTION PM_REAL PM_OF(flat_edge)(PM_REAL x0, PM_REAL x1, PM_REAL y0, PM_REAL y1, PM_REAL slope,
                                     PM_REAL inverse, PM_REAL h, PM_REAL w)
{
    PM_REAL from = PM_OF(limited)(x0, w), to = PM_OF(limited)(x1, w);
    PM_EXACT PM_REAL length = to - from;
    PM_EXACT PM_REAL low = y0 + (from - x0) * slope;
    PM_EXACT PM_REAL high = y1 - (x1 - to) * slope;

    return PM_OF(edge_integral)(length, low, high, inverse, h);
}

/* An edge that is rather steep: y falls with x from y0 at x0 to y1, by `inverse` with x. */
PM_FUNCTION PM_REAL PM_OF(steep_edge)(PM_REAL x0, PM_REAL x1, PM_REAL y0, PM_REAL y1, PM_REAL slope,
                                      PM_REAL inverse, PM_REAL h, PM_REAL w)
{
    PM_REAL from = PM_OF(limited)(x0, w), to = PM_OF(limited)(x1, w);
    PM_EXACT PM_REAL length = to - from;
    PM_EXACT PM_REAL high = y0 - (from - x0) * inverse;
    PM_EXACT PM_REAL low = y1 + (x1 - to) * inverse;

    return PM_OF(edge_integral)(length, low, high, slope, h);
}

/* ---- the overlap --------------------------------------------------------------------------- */

/* The angle of one box in the frame of the other, and the distance of their centres. */
struct PM_OF(placed) {
    PM_REAL y, x, c, s;
};

/* The centre of b in a frame whose origin is a's centre and whose x axis is a's side w. */
PM_FUNCTION PM_STRUCT(placed) PM_OF(placed_in)(PM_STRUCT(rotated) a, PM_STRUCT(rotated) b)
{
    PM_STRUCT(pair) dy = PM_OF(two_sum)(b.y, -a.y), dx = PM_OF(two_sum)(b.x, -a.x);
    PM_STRUCT(pair) ac = PM_OF(pair_of)(a.c, a.c_low), as = PM_OF(pair_of)(a.s, a.s_low);
    PM_STRUCT(pair) bc = PM_OF(pair_of)(b.c, b.c_low), bs = PM_OF(pair_of)(b.s, b.s_low);
    PM_STRUCT(pair) minus = PM_OF(pair_of)(-a.s, -a.s_low);
    PM_STRUCT(placed) p;

    p.x = PM_OF(product_sum)(ac, dx, as, dy);
    p.y = PM_OF(product_sum)(ac, dy, minus, dx);
    p.c = PM_OF(product_sum)(ac, bc, as, bs);
    p.s = PM_OF(product_sum)(ac, bs, minus, bc);
    return p;
}

/* The intersection of the frame with half sides fh and fw, and the box with half sides h and w at
 * p, whose angle is 0 to an eighth of a turn. */
PM_FUNCTION PM_REAL PM_OF(placed_area)(PM_REAL fh, PM_REAL fw, PM_REAL h, PM_REAL w,
                                       PM_STRUCT(placed) p)
{
    bool parallel = p.s <= 1e-18f; /* not if it is NaN: then the area is 0 */
    PM_REAL s = parallel ? 0.0f : p.s, c = parallel ? 1.0f : p.c;
    PM_EXACT PM_REAL slope = s * PM_OF(rotated_inverse)(c);
    PM_EXACT PM_REAL inverse = c * PM_OF(rotated_inverse)(parallel ? 1.0f : p.s);

    inverse = parallel ? 0.0f : inverse;
    PM_EXACT PM_REAL wc = w * c;
    PM_EXACT PM_REAL ws = w * s;
    PM_EXACT PM_REAL hc = h * c;
    PM_EXACT PM_REAL hs = h * s;
    /* Axes on which the boxes lie apart from each other; then 0 is exact. */
    PM_EXACT PM_REAL gap_x = (p.x < 0.0f ? -p.x : p.x) - (fw + (wc + hs));
    PM_EXACT PM_REAL gap_y = (p.y < 0.0f ? -p.y : p.y) - (fh + (ws + hc));
    PM_EXACT PM_REAL along = p.x * c + p.y * s;
    PM_EXACT PM_REAL across = p.y * c - p.x * s;
    PM_EXACT PM_REAL gap_w = (along < 0.0f ? -along : along) - (w + (fw * c + fh * s));
    PM_EXACT PM_REAL gap_h = (across < 0.0f ? -across : across) - (h + (fw * s + fh * c));
    PM_REAL gap = gap_x > gap_y ? gap_x : gap_y;

    gap = gap_w > gap ? gap_w : gap;
    gap = gap_h > gap ? gap_h : gap;

    /* Corners: (right, down) and its opposite, (left, low) and its opposite. */
    PM_EXACT PM_REAL right = wc - hs;
    PM_EXACT PM_REAL down = ws + hc;
    PM_EXACT PM_REAL left = -wc - hs;
    PM_EXACT PM_REAL low = hc - ws;
    PM_EXACT PM_REAL x0 = p.x + left;
    PM_EXACT PM_REAL y0 = p.y + low;
    PM_EXACT PM_REAL x1 = p.x + right;
    PM_EXACT PM_REAL y1 = p.y + down;
    PM_EXACT PM_REAL x2 = p.x - left;
    PM_EXACT PM_REAL y2 = p.y - low;
    PM_EXACT PM_REAL x3 = p.x - right;
    PM_EXACT PM_REAL y3 = p.y - down;
    PM_EXACT PM_REAL area =
        (PM_OF(flat_edge)(x0, x1, y0, y1, slope, inverse, fh, fw) -
         PM_OF(flat_edge)(x3, x2, y3, y2, slope, inverse, fh, fw)) +
        (PM_OF(steep_edge)(x1, x2, y1, y2, slope, inverse, fh, fw) -
         PM_OF(steep_edge)(x0, x3, y0, y3, slope, inverse, fh, fw));

    area = area > 0.0f ? area : 0.0f;
    return gap < 0.0f ? area : 0.0f;
}

/* Intersection and union; the overlap is inner / joined. */
struct PM_OF(shared_area) {
    PM_REAL inner, joined;
};

/* Whether b is the frame: the larger box, or an order of boxes of equal area. */
PM_FUNCTION bool PM_OF(rotated_swaps)(PM_STRUCT(rotated) a, PM_STRUCT(rotated) b)
{
    PM_REAL order = PM_OF(rotated_area)(b) - PM_OF(rotated_area)(a);

    order = order != 0.0f ? order : b.w - a.w;
    order = order != 0.0f ? order : b.y - a.y;
    order = order != 0.0f ? order : b.x - a.x;
    order = order != 0.0f ? order : b.c - a.c;
    order = order != 0.0f ? order : b.s - a.s;
    order = order != 0.0f ? order : b.c_low - a.c_low;
    order = order != 0.0f ? order : b.s_low - a.s_low;
    return order > 0.0f;
}

/* The intersection of a frame and the other box. */
PM_FUNCTION PM_REAL PM_OF(framed_area)(PM_STRUCT(rotated) frame, PM_STRUCT(rotated) other)
{
    PM_STRUCT(placed) p = PM_OF(placed_in)(frame, other);
    /* A box is the same after half a turn, and a mirror does not change the area: s >= 0. */
    bool mirrors = (p.c < 0.0f) != (p.s < 0.0f);

    p.c = p.c < 0.0f ? -p.c : p.c;
    p.s = p.s < 0.0f ? -p.s : p.s;
    /* After a quarter of a turn back, the sides are exchanged: the angle is at most an eighth. */
    bool exchanges = p.s > p.c;
    PM_REAL c = exchanges ? p.s : p.c, s = exchanges ? p.c : p.s;
    PM_REAL h = other.h, w = other.w, y = mirrors != exchanges ? -p.y : p.y;

    p.c = c;
    p.s = s;
    p.y = y;
    return PM_OF(placed_area)(frame.h, frame.w, exchanges ? w : h, exchanges ? h : w, p);
}

/* The overlap of boxes in the order of rotated_swaps. */
PM_FUNCTION PM_STRUCT(shared_area) PM_OF(framed_overlap)(PM_STRUCT(rotated) frame,
                                                         PM_STRUCT(rotated) other)
{
    PM_REAL area = PM_OF(rotated_area)(other), inner = PM_OF(framed_area)(frame, other);
    PM_STRUCT(shared_area) y;

    y.inner = inner < area ? inner : area;
    PM_EXACT PM_REAL joined = (PM_OF(rotated_area)(frame) + area) - y.inner;

    y.joined = joined;
    return y;
}

/* The overlap of two boxes. inner is 0 and joined the sum of the areas if they do not overlap,
 * touch only, or one has no area. */
PM_FUNCTION PM_STRUCT(shared_area) PM_OF(rotated_overlap)(PM_STRUCT(rotated) a,
                                                          PM_STRUCT(rotated) b)
{
    PM_STRUCT(rotated) frame = a, other = b;

    if (PM_OF(rotated_swaps)(a, b)) {
        frame = b;
        other = a;
    }
    return PM_OF(framed_overlap)(frame, other);
}
