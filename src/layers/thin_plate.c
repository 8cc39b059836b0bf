/* thin_plate: the splines' matrix. With the fixed points C [K, 2] and distances r_ij between them,
 *
 *             [ 1  C  phi ]
 *     Delta = [ 0  0  C'  ]     phi_ij = r_ij^2 ln r_ij, 0 on the diagonal
 *             [ 0  0  1'  ]
 *
 * is a square matrix of K + 3. The coefficients of the spline that maps C to points P are
 * Delta^-1 [P; 0]. A sample at (x, y), the middle of its pixel, has the features
 * [1, x, y, r_k^2 ln(r_k + 1e-6)], where r_k is its distance from fixed point k. So the sample's
 * place is linear in P. Its K factors are features Delta^-1 without the last 3 columns. They depend
 * on options only. */
#include "layers/thin_plate.h"

#include <math.h>
#include <string.h>

enum { MOST = PM_THIN_PLATE_MOST + 3 };

void pm_thin_plate_points(int points, double margin_x, double margin_y, double *out)
{
    const int half = points / 2;

    for (int k = 0; k < points; k++) {
        out[2 * k] = margin_x + (1 - 2 * margin_x) * (k % half) / (half - 1);
        out[2 * k + 1] = k < half ? margin_y : 1 - margin_y;
    }
}

/* Delta, and right of it the first `points` columns of the unit matrix. */
struct system { double row[MOST][2 * MOST]; };

static void fill(struct system *s, int points, const double *at)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < points; i++) {
        double *row = s->row[i];

        row[0] = 1;
        for (int axis = 0; axis < 2; axis++)
            row[1 + axis] = s->row[points + axis][3 + i] = at[2 * i + axis];
        s->row[points + 2][3 + i] = 1;
        for (int k = 0; k < points; k++) {
            const double r = hypot(at[2 * i] - at[2 * k], at[2 * i + 1] - at[2 * k + 1]);

            row[3 + k] = i == k ? 0 : r * r * log(r);
        }
        row[points + 3 + i] = 1;
    }
}

/* Gauss and Jordan, with the largest pivot of each column. Delta can be inverted as long as the
 * points differ and are not all on a line. */
static void solve(struct system *s, int points)
{
    const int n = points + 3, wide = n + points;

    for (int k = 0; k < n; k++) {
        int best = k;

        for (int i = k + 1; i < n; i++)
            best = fabs(s->row[i][k]) > fabs(s->row[best][k]) ? i : best;
        for (int j = 0; j < wide; j++) {
            const double other = s->row[best][j];

            s->row[best][j] = s->row[k][j];
            s->row[k][j] = other;
        }
        for (int j = wide; j-- > k;)
            s->row[k][j] /= s->row[k][k];
        for (int i = 0; i < n; i++)
            for (int j = wide; i != k && j-- > k;)
                s->row[i][j] -= s->row[i][k] * s->row[k][j];
    }
}

void pm_thin_plate_matrix(int points, int rows, int cols, double margin_x, double margin_y,
                          float *out)
{
    struct system *s = pm_malloc(sizeof *s);
    double at[2 * PM_THIN_PLATE_MOST], feature[MOST];
    const size_t samples = (size_t)rows * (size_t)cols;

    pm_thin_plate_points(points, margin_x, margin_y, at);
    fill(s, points, at);
    solve(s, points);
    for (size_t i = 0; i < samples; i++) {
        const double x = ((double)(i % (size_t)cols) + 0.5) / cols;
        const double y = ((double)(i / (size_t)cols) + 0.5) / rows;

        feature[0] = 1, feature[1] = x, feature[2] = y;
        for (int k = 0; k < points; k++) {
            const double r = hypot(x - at[2 * k], y - at[2 * k + 1]);

            feature[3 + k] = r * r * log(r + 1e-6);
        }
        for (int k = 0; k < points; k++) {
            double sum = 0;

            for (int j = 0; j < points + 3; j++)
                sum += feature[j] * s->row[j][points + 3 + k];
            out[(size_t)k * samples + i] = (float)sum;
        }
    }
    pm_free(s);
}
