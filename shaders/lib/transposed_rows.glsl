/* Products with a transposed matrix: one output of each of 64 lanes, of 4 rows at once. The
 * including shader defines weight_of and value_of; `which` chooses among its matrices. */
const uint ROWS = 4;   /* of a lane; main names them all */
const uint TERMS = 16; /* of the sums, at once */
shared float tile[64 * (TERMS + 1)];

float weight_of(int which, uint unit, uint term);
float value_of(int which, uint row, uint term);

/* Loads weights of 64 units, from term m on; they are 0 after the last term. */
void load_tile(int which, uint unit, uint units, uint m, uint terms)
{
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < 64 * TERMS; i += 64) {
        uint k = min(unit + i / TERMS, units - 1), term = m + i % TERMS;
        float w = weight_of(which, k, min(term, terms - 1));

        tile[i / TERMS * (TERMS + 1) + i % TERMS] = term < terms ? w : 0.0;
    }
    barrier();
}

/* Adds to s the products of rows first.. of `rows`, for the unit unit + lane of `units`. */
void add_products(int which, uint first, uint rows, uint unit, uint units, uint terms,
                  inout float s[ROWS])
{
    for (uint m = 0; m < terms; m += TERMS) {
        load_tile(which, unit, units, m, terms);
        for (uint i = 0; i < TERMS; i++) {
            float w = tile[gl_LocalInvocationID.x * (TERMS + 1) + i];
            uint term = min(m + i, terms - 1);

            for (uint r = 0; r < ROWS; r++)
                s[r] += w * value_of(which, min(first + r, rows - 1), term);
        }
    }
}
