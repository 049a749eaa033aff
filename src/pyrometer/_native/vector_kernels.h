/* The kernels that use vectors, once for each instruction set: no include guard, kernels.c includes it
 * again and again with other meanings for
 *
 *   NAME(kernel), TARGET        the function's name in this set, and what the compiler may use in it
 *   EACH(X)                     X(0) X(1) …, one for each accumulator: enough to hide the latency of an FMA
 *   F32, F32_LANES, F32_ALL(x), F32_FMA(a, b, c), F32_LOAD, F32_STORE, F32_STREAM, F32_ADD
 *   F64, F64_LANES, F64_ALL(x), F64_FMA(a, b, c), F64_LOAD, F64_STORE, F64_ADD
 *   EACH_ROW(X), ROWS           of the tiles of a product of matrices: see product_kernels.h
 *   AFTER_STREAMING()           waits until streamed stores are done
 */

/* Each accumulator i begins at i + 1 and becomes half of itself plus one: two operations a lane and round,
 * and a sum at the end that tells how many rounds there were. */
#define BEGIN_F32(i) F32 x##i = F32_ALL((float)(i) + 1.0f);
#define ROUND_F32(i) x##i = F32_FMA(x##i, half, one);
#define END_F32(i)                                                                                         \
    F32_STORE(lanes, x##i);                                                                                \
    for (int lane = 0; lane < F32_LANES; lane++)                                                           \
        sum += (double)lanes[lane];

TARGET static double NAME(fma_f32)(uint64_t rounds) {
    const F32 half = F32_ALL(0.5f), one = F32_ALL(1.0f);
    _Alignas(64) float lanes[F32_LANES];
    double sum = 0.0;
    EACH(BEGIN_F32)
    for (uint64_t round = 0; round < rounds; round++) {
        EACH(ROUND_F32)
    }
    EACH(END_F32)
    return sum;
}

#define BEGIN_F64(i) F64 x##i = F64_ALL((double)(i) + 1.0);
#define ROUND_F64(i) x##i = F64_FMA(x##i, half, one);
#define END_F64(i)                                                                                         \
    F64_STORE(lanes, x##i);                                                                                \
    for (int lane = 0; lane < F64_LANES; lane++)                                                           \
        sum += lanes[lane];

TARGET static double NAME(fma_f64)(uint64_t rounds) {
    const F64 half = F64_ALL(0.5), one = F64_ALL(1.0);
    _Alignas(64) double lanes[F64_LANES];
    double sum = 0.0;
    EACH(BEGIN_F64)
    for (uint64_t round = 0; round < rounds; round++) {
        EACH(ROUND_F64)
    }
    EACH(END_F64)
    return sum;
}

/* a = b + 3 c; ``count`` is a multiple of FLOATS_A_BLOCK. */
TARGET static void NAME(triad)(float *a, const float *b, const float *c, size_t count) {
    const F32 three = F32_ALL(3.0f);
    for (size_t i = 0; i < count; i += 4 * F32_LANES) {
        F32 one = F32_FMA(F32_LOAD(c + i), three, F32_LOAD(b + i));
        F32 two = F32_FMA(F32_LOAD(c + i + F32_LANES), three, F32_LOAD(b + i + F32_LANES));
        F32 third = F32_FMA(F32_LOAD(c + i + 2 * F32_LANES), three, F32_LOAD(b + i + 2 * F32_LANES));
        F32 fourth = F32_FMA(F32_LOAD(c + i + 3 * F32_LANES), three, F32_LOAD(b + i + 3 * F32_LANES));
        F32_STORE(a + i, one);
        F32_STORE(a + i + F32_LANES, two);
        F32_STORE(a + i + 2 * F32_LANES, third);
        F32_STORE(a + i + 3 * F32_LANES, fourth);
    }
}

#ifdef F32_STREAM
TARGET static void NAME(streaming_triad)(float *a, const float *b, const float *c, size_t count) {
    const F32 three = F32_ALL(3.0f);
    for (size_t i = 0; i < count; i += 4 * F32_LANES) {
        F32 one = F32_FMA(F32_LOAD(c + i), three, F32_LOAD(b + i));
        F32 two = F32_FMA(F32_LOAD(c + i + F32_LANES), three, F32_LOAD(b + i + F32_LANES));
        F32 third = F32_FMA(F32_LOAD(c + i + 2 * F32_LANES), three, F32_LOAD(b + i + 2 * F32_LANES));
        F32 fourth = F32_FMA(F32_LOAD(c + i + 3 * F32_LANES), three, F32_LOAD(b + i + 3 * F32_LANES));
        F32_STREAM(a + i, one);
        F32_STREAM(a + i + F32_LANES, two);
        F32_STREAM(a + i + 2 * F32_LANES, third);
        F32_STREAM(a + i + 3 * F32_LANES, fourth);
    }
    AFTER_STREAMING();
}
#endif

/* The sum of all elements; ``count`` is a multiple of FLOATS_A_BLOCK. */
TARGET static double NAME(read)(const float *a, size_t count) {
    F32 x0 = F32_ALL(0.0f), x1 = x0, x2 = x0, x3 = x0, x4 = x0, x5 = x0, x6 = x0, x7 = x0;
    for (size_t i = 0; i < count; i += 8 * F32_LANES) {
        x0 = F32_ADD(x0, F32_LOAD(a + i));
        x1 = F32_ADD(x1, F32_LOAD(a + i + F32_LANES));
        x2 = F32_ADD(x2, F32_LOAD(a + i + 2 * F32_LANES));
        x3 = F32_ADD(x3, F32_LOAD(a + i + 3 * F32_LANES));
        x4 = F32_ADD(x4, F32_LOAD(a + i + 4 * F32_LANES));
        x5 = F32_ADD(x5, F32_LOAD(a + i + 5 * F32_LANES));
        x6 = F32_ADD(x6, F32_LOAD(a + i + 6 * F32_LANES));
        x7 = F32_ADD(x7, F32_LOAD(a + i + 7 * F32_LANES));
    }
    _Alignas(64) float lanes[F32_LANES];
    double sum = 0.0;
    END_F32(0) END_F32(1) END_F32(2) END_F32(3) END_F32(4) END_F32(5) END_F32(6) END_F32(7)
    return sum;
}

#define PRODUCT(kernel) NAME(kernel##_f32)
#define NUMBER float
#define VECTOR F32
#define LANES F32_LANES
#define ALL F32_ALL
#define FMA F32_FMA
#define ADD F32_ADD
#define LOAD F32_LOAD
#define STORE F32_STORE
#include "product_kernels.h"

#define PRODUCT(kernel) NAME(kernel##_f64)
#define NUMBER double
#define VECTOR F64
#define LANES F64_LANES
#define ALL F64_ALL
#define FMA F64_FMA
#define ADD F64_ADD
#define LOAD F64_LOAD
#define STORE F64_STORE
#include "product_kernels.h"

static const Kernels NAME(kernels) = {
    .fma_f32 = NAME(fma_f32),
    .fma_f64 = NAME(fma_f64),
    .triad = NAME(triad),
#ifdef F32_STREAM
    .streaming_triad = NAME(streaming_triad),
#endif
    .read = NAME(read),
    .multiply_f32 = NAME(multiply_f32),
    .multiply_f64 = NAME(multiply_f64),
    .accumulators = 0 EACH(COUNT_ONE),
    .f32_lanes = F32_LANES,
    .f64_lanes = F64_LANES,
};

#undef BEGIN_F32
#undef ROUND_F32
#undef END_F32
#undef BEGIN_F64
#undef ROUND_F64
#undef END_F64
#undef NAME
#undef TARGET
#undef EACH
#undef F32
#undef F32_LANES
#undef F32_ALL
#undef F32_FMA
#undef F32_LOAD
#undef F32_STORE
#undef F32_STREAM
#undef F32_ADD
#undef F64
#undef F64_LANES
#undef F64_ALL
#undef F64_FMA
#undef F64_LOAD
#undef F64_STORE
#undef F64_ADD
#undef EACH_ROW
#undef ROWS
#undef AFTER_STREAMING
