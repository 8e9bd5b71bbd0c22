/* Products of trains with rows of data, compiled.

   Every routine does what the NumPy code beside its caller does, and is compared with it in the tests. Rows are the LAST
   axis of all arrays that come and go: an environment is (rank, N) with a stride between its lines, so that lines of a
   block of rows can be passed as they are. Nothing is allocated here but scratch; a routine returns 0, or -1 without
   having written anything if there is no memory for it.

   The file is compiled once per level of the processor (LEVEL), with all names ending in it; `native_level` says which
   of them this processor has. Vectors are written out (GCC and clang), so that no compiler has to find them. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef LEVEL
#define LEVEL 0
#endif

#define PASTE_(a, b, c) a##_##b##_l##c
#define PASTE(a, b, c) PASTE_(a, b, c)

/* Bytes of a vector. Registers for sums: 32 with AVX-512 and on ARM, else 16. */
#define VECTOR_BYTES 32
#if LEVEL >= 4 || defined(__aarch64__)
#define TILE_B 4
#define TILE_ROWS 4
#define TILE_OUTER 8
#else
#define TILE_B 2
#define TILE_ROWS 4
#define TILE_OUTER 4
#endif
#define TILE_K 4
/* Bytes of a strip of rows that are to stay in the first-level cache. */
#define STRIP_BYTES 24576

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#if LEVEL == 0
/* The interface; it changes whenever a signature does. */
EXPORT int native_interface(void) { return 3; }

EXPORT int native_level(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")))
        return 0;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") ? 4 : 3;
#else
    return 0;
#endif
}
#endif

static inline size_t up_to(size_t count, size_t multiple) { return (count + multiple - 1) / multiple * multiple; }

/* Scratch for `count` items, aligned to a line of the cache; `*memory` is what to free. */
static void *scratch(size_t bytes, void **memory)
{
    *memory = malloc(bytes + 64);
    return *memory ? (void *)(((uintptr_t)*memory + 63) & ~(uintptr_t)63) : NULL;
}

/* --- one core, in float64 whatever the rows are in -------------------------------------------------------------------- */

/* Cores are (functions, near, far) here. */
typedef struct {
    size_t n, near, far;
} shape;

static inline size_t n_entries(shape s) { return s.n * s.near * s.far; }

static double inner(size_t size, const double *one, const double *other)
{
    double total = 0;
    for (size_t k = 0; k < size; k++) total += one[k] * other[k];
    return total;
}

/* Multiply the middle one of three axes with a square matrix: to[o][e][i] = sum over m of matrix[m][e] * from[o][m][i]. */
static void turn_axis(size_t outer, size_t size, size_t inner_size, const double *matrix, const double *from, double *to)
{
    memset(to, 0, outer * size * inner_size * sizeof(double));
    for (size_t o = 0; o < outer; o++, from += size * inner_size, to += size * inner_size)
        for (size_t m = 0; m < size; m++)
            for (size_t e = 0; e < size; e++) {
                const double factor = matrix[m * size + e];
                for (size_t i = 0; i < inner_size; i++) to[e * inner_size + i] += factor * from[m * inner_size + i];
            }
}

/* Multiply the last axis with a square matrix. */
static void turn_last(size_t outer, size_t size, const double *matrix, const double *from, double *to)
{
    memset(to, 0, outer * size * sizeof(double));
    for (size_t o = 0; o < outer; o++, from += size, to += size)
        for (size_t m = 0; m < size; m++)
            for (size_t e = 0; e < size; e++) to[e] += from[m] * matrix[m * size + e];
}

/* Turn all three axes; `turns` holds the matrices of functions, near and far channels, one after the other. */
static void turn_core(shape s, const double *turns, const double *from, double *spare, double *to)
{
    turn_axis(1, s.n, s.near * s.far, turns, from, to);
    turn_axis(s.n, s.near, s.far, turns + s.n * s.n, to, spare);
    turn_last(s.n * s.near, s.far, turns + s.n * s.n + s.near * s.near, spare, to);
}

/* Divide by the nearly right Hessian: it is diagonal, `spectrum`, in turned coordinates. */
static void precondition(shape s, const double *there, const double *back, const double *spectrum, const double *from,
                         double *spare, double *other, double *to)
{
    turn_core(s, there, from, spare, other);
    for (size_t k = 0; k < n_entries(s); k++) other[k] /= spectrum[k];
    turn_core(s, back, other, spare, to);
}

#define T float
#define TYPE f32
#define IS_FLOAT 1
#include "typed.h"
#undef T
#undef TYPE
#undef IS_FLOAT
#define T double
#define TYPE f64
#define IS_FLOAT 0
#include "typed.h"
