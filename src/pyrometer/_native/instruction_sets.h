/* The vector kernels in each instruction set, and the choice among them at run time. */
#ifndef PYROMETER_INSTRUCTION_SETS_H
#define PYROMETER_INSTRUCTION_SETS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Arrays are worked through in blocks of so many elements: eight of the widest vectors. */
#define FLOATS_A_BLOCK 128

/* Of matrices that are multiplied: a multiple of every set's tiles, and of the parts it is worked through in. */
#define PRODUCT_SIZE 672
#define PRODUCT_DEPTH 224
#define PRODUCT_BLOCK 168

typedef void Multiply(const void *a, const void *b, void *c, void *a_panels, void *b_panels);

typedef struct {
    double (*fma_f32)(uint64_t rounds);
    double (*fma_f64)(uint64_t rounds);
    void (*triad)(float *a, const float *b, const float *c, size_t count);
    void (*streaming_triad)(float *a, const float *b, const float *c, size_t count); /* NULL: none */
    double (*read)(const float *a, size_t count);
    Multiply *multiply_f32, *multiply_f64;
    int accumulators;
    int f32_lanes;
    int f64_lanes;
} Kernels;

#define COUNT_ONE(i) +1
#define SIX(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define FOURTEEN(X) TWELVE(X) X(12) X(13)
#define TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define TWENTY_FOUR(X)                                                                                     \
    TWELVE(X) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)

/* What every compiler here can make for its processor: vectors of 16 bytes, product and sum apart. */
typedef float GenericF32 __attribute__((vector_size(16)));
typedef double GenericF64 __attribute__((vector_size(16)));

static inline GenericF32 generic_load(const float *from) {
    GenericF32 vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
}

static inline GenericF64 generic_load_f64(const double *from) {
    GenericF64 vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
}

#define NAME(kernel) generic_##kernel
#define TARGET
#define EACH TWELVE
#define F32 GenericF32
#define F32_LANES 4
#define F32_ALL(x) ((GenericF32){(x), (x), (x), (x)})
#define F32_FMA(a, b, c) ((a) * (b) + (c))
#define F32_LOAD generic_load
#define F32_STORE(to, vector) memcpy((to), &(vector), sizeof(GenericF32))
#define F32_ADD(a, b) ((a) + (b))
#define F64 GenericF64
#define F64_LANES 2
#define F64_ALL(x) ((GenericF64){(x), (x)})
#define F64_FMA(a, b, c) ((a) * (b) + (c))
#define F64_LOAD generic_load_f64
#define F64_STORE(to, vector) memcpy((to), &(vector), sizeof(GenericF64))
#define F64_ADD(a, b) ((a) + (b))
#define EACH_ROW SIX
#define ROWS 6
#include "vector_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define NAME(kernel) avx2_##kernel
#define TARGET __attribute__((target("avx2,fma")))
#define EACH TWELVE /* of sixteen registers */
#define F32 __m256
#define F32_LANES 8
#define F32_ALL _mm256_set1_ps
#define F32_FMA _mm256_fmadd_ps
#define F32_LOAD _mm256_load_ps
#define F32_STORE _mm256_store_ps
#define F32_STREAM _mm256_stream_ps
#define F32_ADD _mm256_add_ps
#define F64 __m256d
#define F64_LANES 4
#define F64_ALL _mm256_set1_pd
#define F64_FMA _mm256_fmadd_pd
#define F64_LOAD _mm256_load_pd
#define F64_STORE _mm256_store_pd
#define F64_ADD _mm256_add_pd
#define EACH_ROW SIX /* 12 of sixteen registers, two for b, one for a */
#define ROWS 6
#define AFTER_STREAMING _mm_sfence
#include "vector_kernels.h"

#define NAME(kernel) avx512_##kernel
#define TARGET __attribute__((target("avx512f")))
#define EACH TWENTY_FOUR
#define F32 __m512
#define F32_LANES 16
#define F32_ALL _mm512_set1_ps
#define F32_FMA _mm512_fmadd_ps
#define F32_LOAD _mm512_load_ps
#define F32_STORE _mm512_store_ps
#define F32_STREAM _mm512_stream_ps
#define F32_ADD _mm512_add_ps
#define F64 __m512d
#define F64_LANES 8
#define F64_ALL _mm512_set1_pd
#define F64_FMA _mm512_fmadd_pd
#define F64_LOAD _mm512_load_pd
#define F64_STORE _mm512_store_pd
#define F64_ADD _mm512_add_pd
#define EACH_ROW FOURTEEN
#define ROWS 14
#define AFTER_STREAMING _mm_sfence
#include "vector_kernels.h"

#if (defined(__clang__) && __clang_major__ >= 14) || (!defined(__clang__) && __GNUC__ >= 11)
#define HAS_BF16_KERNEL 1
#define BF16_LANES 32

/* Accumulator i begins at i + 1; each round adds 1 × 1 + 1 × 1 to each of its 16 lanes. */
#define BEGIN_BF16(i) __m512 x##i = _mm512_set1_ps((float)(i) + 1.0f);
#define ROUND_BF16(i) x##i = _mm512_dpbf16_ps(x##i, ones, ones);
#define END_BF16(i)                                                                                        \
    _mm512_store_ps(lanes, x##i);                                                                          \
    for (int lane = 0; lane < 16; lane++)                                                                  \
        sum += (double)lanes[lane];

__attribute__((target("avx512f,avx512bw,avx512bf16"))) static double avx512_fma_bf16(uint64_t rounds) {
    const __m512bh ones = (__m512bh)_mm512_set1_epi16(0x3F80);
    _Alignas(64) float lanes[16];
    double sum = 0.0;
    TWENTY_FOUR(BEGIN_BF16)
    for (uint64_t round = 0; round < rounds; round++) {
        TWENTY_FOUR(ROUND_BF16)
    }
    TWENTY_FOUR(END_BF16)
    return sum;
}
#endif

#elif defined(__aarch64__)
#include <arm_neon.h>

#define NAME(kernel) neon_##kernel
#define TARGET
#define EACH TWENTY_FOUR
#define F32 float32x4_t
#define F32_LANES 4
#define F32_ALL vdupq_n_f32
#define F32_FMA(a, b, c) vfmaq_f32((c), (a), (b))
#define F32_LOAD vld1q_f32
#define F32_STORE vst1q_f32
#define F32_ADD vaddq_f32
#define F64 float64x2_t
#define F64_LANES 2
#define F64_ALL vdupq_n_f64
#define F64_FMA(a, b, c) vfmaq_f64((c), (a), (b))
#define F64_LOAD vld1q_f64
#define F64_STORE vst1q_f64
#define F64_ADD vaddq_f64
#define EACH_ROW TWELVE
#define ROWS 12
#include "vector_kernels.h"
#endif

typedef struct {
    const char *name;
    const Kernels *kernels;
} InstructionSet;

/* Those this processor has, the widest first; the last is generic. Returns how many. */
static int usable_instruction_sets(InstructionSet sets[3]) {
    int count = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        sets[count++] = (InstructionSet){"AVX-512", &avx512_kernels};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        sets[count++] = (InstructionSet){"AVX2", &avx2_kernels};
#elif defined(__aarch64__)
    sets[count++] = (InstructionSet){"NEON", &neon_kernels};
#endif
    sets[count++] = (InstructionSet){"generic", &generic_kernels};
    return count;
}

static int has_bf16(void) {
#ifdef HAS_BF16_KERNEL
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw");
#else
    return 0;
#endif
}

#endif
