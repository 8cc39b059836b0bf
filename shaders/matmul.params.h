/* matmul: y [batch][m][n] = a [batch][m][k] b [batch][k][n]. With across, a is stored [k][m], b
 * [n][k]. */
struct matmul_params {
    int batch, m, n, k;
    int a_across, b_across;
};
