/* Twin of src/layers/binary.c: kinds, values and derivatives. */
const int ADD = 0, SUBTRACT = 1, MULTIPLY = 2, DIVIDE = 3, MINIMUM = 4, MAXIMUM = 5;

/* Whether minimum and maximum choose a; NaN wins. */
bool takes_a(int kind, float a, float b)
{
    return isnan(a) || (kind == MINIMUM ? a <= b : a >= b);
}

float apply(int kind, float a, float b)
{
    switch (kind) {
    case ADD:
        return a + b;
    case SUBTRACT:
        return a - b;
    case MULTIPLY:
        return a * b;
    case DIVIDE:
        return a / b;
    default:
        return takes_a(kind, a, b) ? a : b;
    }
}

float slope_a(int kind, float a, float b)
{
    return kind == MULTIPLY ? b : kind == DIVIDE ? 1.0 / b : takes_a(kind, a, b) ? 1.0 : 0.0;
}

float slope_b(int kind, float a, float b)
{
    return kind == MULTIPLY ? a : kind == DIVIDE ? -(a / b) / b : takes_a(kind, a, b) ? 0.0 : 1.0;
}

vec4 apply(int kind, vec4 a, vec4 b)
{
    return vec4(apply(kind, a.x, b.x), apply(kind, a.y, b.y), apply(kind, a.z, b.z),
                apply(kind, a.w, b.w));
}

vec4 slope_a(int kind, vec4 a, vec4 b)
{
    return vec4(slope_a(kind, a.x, b.x), slope_a(kind, a.y, b.y), slope_a(kind, a.z, b.z),
                slope_a(kind, a.w, b.w));
}

vec4 slope_b(int kind, vec4 a, vec4 b)
{
    return vec4(slope_b(kind, a.x, b.x), slope_b(kind, a.y, b.y), slope_b(kind, a.z, b.z),
                slope_b(kind, a.w, b.w));
}
