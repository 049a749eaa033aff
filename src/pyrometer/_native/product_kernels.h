/* Products of matrices in one precision and one instruction set: no include guard, vector_kernels.h includes
 * it for f32 and for f64 with other meanings for
 *
 *   PRODUCT(kernel), TARGET     the function's name, and what the compiler may use in it
 *   EACH_ROW(X), ROWS           X(0) X(1) …, one for each row of a tile, and how many: two vectors wide, a tile
 *                               fills the registers
 *   NUMBER, VECTOR, LANES, ALL(x), FMA(a, b, c), ADD, LOAD, STORE
 *
 * c = aᵀ b, all of PRODUCT_SIZE rows and columns. a and b are worked through in slices of PRODUCT_DEPTH rows. Of
 * each, both are first copied into panels as wide as a tile: one of b fits into the first cache, and a block
 * of a's into the second, while they meet. */

#define COLUMNS (2 * LANES)

#define BEGIN_ROW(i)                                                                                       \
    VECTOR x##i = zero, y##i = zero;                                                                       \
    __builtin_prefetch(c + (i) * PRODUCT_SIZE, 1);                                                         \
    __builtin_prefetch(c + (i) * PRODUCT_SIZE + LANES, 1);
#define ADD_TO_ROW(i)                                                                                      \
    {                                                                                                      \
        const VECTOR factor = ALL(a[i]);                                                                   \
        x##i = FMA(factor, left, x##i);                                                                    \
        y##i = FMA(factor, right, y##i);                                                                   \
    }
#define END_ROW(i)                                                                                         \
    if (!is_first) {                                                                                       \
        x##i = ADD(x##i, LOAD(c));                                                                         \
        y##i = ADD(y##i, LOAD(c + LANES));                                                                 \
    }                                                                                                      \
    STORE(c, x##i);                                                                                        \
    STORE(c + LANES, y##i);                                                                                \
    c += PRODUCT_SIZE;

TARGET static void PRODUCT(tile)(const NUMBER *a, const NUMBER *b, NUMBER *c, int is_first) {
    const VECTOR zero = ALL(0);
    EACH_ROW(BEGIN_ROW)
    for (size_t k = 0; k < PRODUCT_DEPTH; k++, a += ROWS, b += COLUMNS) {
        const VECTOR left = LOAD(b), right = LOAD(b + LANES);
        EACH_ROW(ADD_TO_ROW)
    }
    EACH_ROW(END_ROW)
}

/* PRODUCT_DEPTH rows, ``width`` numbers of each from ``from`` on, into panels of ``panel`` numbers a row. */
TARGET static inline __attribute__((always_inline)) void
PRODUCT(copy_panels)(NUMBER *to, const NUMBER *from, size_t width, const size_t panel) {
    for (size_t k = 0; k < PRODUCT_DEPTH; k++, from += PRODUCT_SIZE)
        for (size_t first = 0; first < width; first += panel)
            memcpy(to + first * PRODUCT_DEPTH + k * panel, from + first, panel * sizeof(NUMBER));
}

TARGET static void PRODUCT(multiply)(const void *a_matrix, const void *b_matrix, void *c_matrix, void *a_panels,
                                     void *b_panels) {
    const NUMBER *a = a_matrix, *b = b_matrix;
    NUMBER *c = c_matrix, *a_block = a_panels, *b_slice = b_panels;
    for (size_t k = 0; k < PRODUCT_SIZE; k += PRODUCT_DEPTH) {
        PRODUCT(copy_panels)(b_slice, b + k * PRODUCT_SIZE, PRODUCT_SIZE, COLUMNS);
        for (size_t row = 0; row < PRODUCT_SIZE; row += PRODUCT_BLOCK) {
            PRODUCT(copy_panels)(a_block, a + k * PRODUCT_SIZE + row, PRODUCT_BLOCK, ROWS);
            for (size_t column = 0; column < PRODUCT_SIZE; column += COLUMNS)
                for (size_t i = 0; i < PRODUCT_BLOCK; i += ROWS)
                    PRODUCT(tile)(a_block + i * PRODUCT_DEPTH, b_slice + column * PRODUCT_DEPTH,
                                  c + (row + i) * PRODUCT_SIZE + column, k == 0);
        }
    }
}

_Static_assert(PRODUCT_SIZE % COLUMNS == 0 && PRODUCT_BLOCK % ROWS == 0, "tiles cover the matrix");

#undef BEGIN_ROW
#undef ADD_TO_ROW
#undef END_ROW
#undef COLUMNS
#undef PRODUCT
#undef NUMBER
#undef VECTOR
#undef LANES
#undef ALL
#undef FMA
#undef ADD
#undef LOAD
#undef STORE
