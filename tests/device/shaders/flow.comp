#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
/* Every kind of control flow and of values that the translation to OpenCL C must rebuild. Each
 * function computes one of the six values of an element. */
struct flow_params { int count; float a; };
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InI32 x; OutI32 y; flow_params p; };

const int STEPS[4] = int[](3, -2, 7, 1);
int calls = 5;

/* Nested loops; a break out of a switch leaves the loop around it, and a continue goes on. */
int loops(int n)
{
    int sum = 0;

    for (int i = 0; i < 7; i++) {
        if (i == n % 5)
            continue;
        for (int k = i; k < 9; k += 2) {
            if (k == n % 3)
                continue;
            if (sum > 40)
                break;
            switch (k % 4) {
            case 0:
                sum += 1;
            case 1:
                sum += i;
                break;
            case 3:
                if (n > 60)
                    continue;
                sum -= k;
                break;
            default:
                if (i > 4)
                    return sum;
                sum += 2 * k;
            }
            sum ^= 3;
        }
        if (sum > 90)
            break;
    }
    return sum;
}

int until(int n)
{
    int a = 1, b = n;

    do {
        int t = a;

        a = b;
        b = t + b;
        if (b > 1000)
            break;
    } while ((a & 7) != 5);
    return a - b;
}

int choose(int n)
{
    switch (n) {
    case -1: return 4;
    case 2:
    case 3: break;
    case 5: n += 100;
    default: n *= 3;
    }
    return n;
}

int vectors(int n)
{
    bvec4 b = lessThan(ivec4(n, n + 1, n + 2, n + 3), ivec4(4));
    bvec2 c = bvec2(b.x, n > 2);
    int k = 0;

    b.z = !b.z;
    if (any(b))
        k += 1;
    if (all(not(b)))
        k += 2;
    if (c.y)
        k += 4;
    if (b[n & 3])
        k += 8;
    vec4 v = mix(vec4(1.0), vec4(2.0, 3.0, 4.0, 5.0), b);
    v[n & 3] += 10.0;
    return k + int(dot(v, vec4(1.0))) + (equal(c, bvec2(true)) == bvec2(true) ? 16 : 0);
}

int integers(int n)
{
    int big = 0x7fffffff - 3;
    ivec2 m = ivec2(n - 9, 9 - n) % ivec2(4, -5 + 10 * (n & 1));

    calls += n;
    return big + n + (n - 7) % 3 + m.x * 10 + m.y * 100 + ((n - 8) >> 1) + STEPS[n & 3] * calls;
}

int floats(int n)
{
    float inf = 1.0 / 0.0, x = float(n - 4) * p.a;
    float z = x < -2.0 ? -inf : x > 2.0 ? inf : x == 0.0 ? -0.0 : 1.0e-40;

    return floatBitsToInt(z) ^ int(roundEven(x)) ^ (isinf(z) ? 64 : 0) ^
           (floatBitsToInt(clamp(x, -1.0, 1.5)) & 255) ^ int(sign(x) + step(1.0, x));
}

void main()
{
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        int n = x.v[i];

        y.v[6u * i] = loops(n);
        y.v[6u * i + 1u] = until(n);
        y.v[6u * i + 2u] = choose(n);
        y.v[6u * i + 3u] = vectors(n);
        y.v[6u * i + 4u] = integers(n);
        y.v[6u * i + 5u] = floats(n);
    }
}
