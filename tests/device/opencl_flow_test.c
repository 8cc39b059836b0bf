/* Control flow and values on an OpenCL device: the translated shaders/flow.comp computes what the
 * same functions in C compute. */
#include "device/opencl_fixture.h"

#include "flow.spv.h"

#include <math.h>

enum { FIRST = -1, COUNT = 102, VALUES = 6 };

static const struct pm_shader shaders[] = { { "test_flow", spv_flow, sizeof spv_flow }, { 0 } };
struct flow_params { int count; float a; };
static const struct pm_kernel row_flow = { .name = "test_flow", .bufs = "r:x w:y", .cpu = no_cpu,
                                           .params_size = sizeof(struct flow_params) };

/* GLSL's % as glslang compiles it: the remainder has the sign of the divisor. */
static int mod(int a, int b)
{
    const int r = a % b;

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static int loops(int n)
{
    int sum = 0;

    for (int i = 0; i < 7; i++) {
        if (i == mod(n, 5))
            continue;
        for (int k = i; k < 9; k += 2) {
            if (k == mod(n, 3))
                continue;
            if (sum > 40)
                break;
            switch (k % 4) {
            case 0:
                sum += 1;
                /* fall through */
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

static int until(int n)
{
    int a = 1, b = n;

    do {
        const int t = a;

        a = b;
        b = t + b;
        if (b > 1000)
            break;
    } while ((a & 7) != 5);
    return a - b;
}

static int choose(int n)
{
    return n == -1 ? 4 : n == 2 || n == 3 ? n : n == 5 ? 3 * 105 : 3 * n;
}

static int vectors(int n)
{
    const float yes[4] = { 2, 3, 4, 5 };
    bool b[4];
    int sum = 10, k = 0;

    for (int i = 0; i < 4; i++)
        b[i] = n + i < 4;
    const bool c[2] = { b[0], n > 2 };
    b[2] = !b[2];
    k += b[0] || b[1] || b[2] || b[3] ? 1 : 2;
    k += c[1] ? 4 : 0;
    k += b[n & 3] ? 8 : 0;
    for (int i = 0; i < 4; i++)
        sum += b[i] ? (int)yes[i] : 1;
    return k + sum + (c[0] && c[1] ? 16 : 0);
}

static int integers(int n)
{
    static const int steps[4] = { 3, -2, 7, 1 };
    const int x = mod(n - 9, 4), y = mod(9 - n, -5 + 10 * (n & 1));
    const int small = mod(n - 7, 3) + x * 10 + y * 100 + ((n - 8) >> 1) + steps[n & 3] * (5 + n);

    return (int)(0x7ffffffcu + (unsigned)n + (unsigned)small); /* GLSL's sums wrap */
}

static int bits(float x)
{
    int i;

    memcpy(&i, &x, sizeof i);
    return i;
}

static int floats(int n, float a)
{
    const float x = (float)(n - 4) * a;
    const float z = x < -2 ? -INFINITY : x > 2 ? INFINITY : x == 0 ? -0.0f : 1e-40f;
    const int sign = (x > 0) - (x < 0), step = x < 1 ? 0 : 1;

    return bits(z) ^ (int)rintf(x) ^ (isinf(z) ? 64 : 0) ^ (bits(fminf(fmaxf(x, -1), 1.5f)) & 255) ^
           (sign + step);
}

static void test_flow(void **state)
{
    struct cl_device *c = open_device(NULL);
    struct pm_device *d = &c->shared.base;
    const struct flow_params p = { COUNT, 0.75f };
    int32_t x[COUNT], y[COUNT * VALUES];
    struct pm_program *prog = NULL;

    (void)state;
    c->shared.pipelines.extra = shaders;
    for (int i = 0; i < COUNT; i++)
        x[i] = FIRST + i;
    struct pm_buffer *bx = new_buffer(d, COUNT, NULL), *by = new_buffer(d, COUNT * VALUES, NULL);
    const struct pm_bound_call call = {
        .kernel = &row_flow, .label = "flow", .count = COUNT, .params = &p,
        .buf = { place(bx, 0, COUNT), place(by, 0, COUNT * VALUES) } };
    const struct pm_program_desc desc = { .name = "flow", .calls = &call, .calls_count = 1,
                                          .slots = 1 };

    ok(pm_buffer_write(d, bx, 0, x, sizeof x));
    ok(pm_program_create(d, &desc, &prog));
    run_once(prog);
    ok(pm_buffer_read(d, by, 0, y, sizeof y));
    for (int i = 0; i < COUNT; i++) {
        const int n = x[i], want[VALUES] = { loops(n), until(n), choose(n), vectors(n),
                                             integers(n), floats(n, p.a) };

        for (int k = 0; k < VALUES; k++)
            if (y[VALUES * i + k] != want[k])
                fail_msg("value %d of %d: %d, not %d", k, n, y[VALUES * i + k], want[k]);
    }
    pm_program_destroy(&prog);
    drop_buffer(d, bx);
    drop_buffer(d, by);
    close_device(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_flow) };

    return on_pocl(tests, PM_COUNT(tests), NULL, NULL);
}
