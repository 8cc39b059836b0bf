/* unary: y = f(x) over count values. kind is an enum pm_unary; a and b are the function's
 * parameters. */
struct unary_params {
    int count, kind;
    float a, b;
};
