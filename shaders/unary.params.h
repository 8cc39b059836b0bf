/* unary: y = f(x) over count values; kind is of enum pm_unary, a and b are the function's numbers. */
struct unary_params {
    int count, kind;
    float a, b;
};
