/* Four neighbours of a row at a time, for starts whose rows may have any length. `vector`: the
 * length is a multiple of four, and so is `column`. */
#ifndef KERNELS_INCLUDE_EVOKE_ROWS_H
#define KERNELS_INCLUDE_EVOKE_ROWS_H

/* Four elements of a row from `column`, zeros from `columns` on. */
static __device__ __forceinline__ float4 load4(const float *__restrict__ row, int column,
                                               int columns, bool vector) {
    if (vector)
        return column < columns ? __ldg((const float4 *)(row + column))
                                : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    return make_float4(column < columns ? row[column] : 0.0f,
                       column + 1 < columns ? row[column + 1] : 0.0f,
                       column + 2 < columns ? row[column + 2] : 0.0f,
                       column + 3 < columns ? row[column + 3] : 0.0f);
}

static __device__ __forceinline__ float4 add4(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* y + a x */
static __device__ __forceinline__ float4 axpy4(float a, float4 x, float4 y) {
    return make_float4(y.x + a * x.x, y.y + a * x.y, y.z + a * x.z, y.w + a * x.w);
}

/* Stores those of v that stand before column `columns`. */
static __device__ __forceinline__ void store4(float *__restrict__ row, int column, int columns,
                                              bool vector, float4 v) {
    if (vector) {
        if (column < columns)
            __stwb((float4 *)(row + column), v);
        return;
    }
    if (column < columns)
        row[column] = v.x;
    if (column + 1 < columns)
        row[column + 1] = v.y;
    if (column + 2 < columns)
        row[column + 2] = v.z;
    if (column + 3 < columns)
        row[column + 3] = v.w;
}

/* Whether one of four elements is not zero. */
static __device__ __forceinline__ bool is_any(float4 v) {
    return v.x != 0.0f || v.y != 0.0f || v.z != 0.0f || v.w != 0.0f;
}

/* A bit for each of four masks that is on: above zero. */
static __device__ __forceinline__ unsigned int live4(float4 x) {
    return (x.x > 0.0f ? 1u : 0u) | (x.y > 0.0f ? 2u : 0u) | (x.z > 0.0f ? 4u : 0u) |
           (x.w > 0.0f ? 8u : 0u);
}

/* Exact zeros where the bit is off. */
static __device__ __forceinline__ float4 keep4(float4 v, unsigned int bits) {
    return make_float4(bits & 1u ? v.x : 0.0f, bits & 2u ? v.y : 0.0f, bits & 4u ? v.z : 0.0f,
                       bits & 8u ? v.w : 0.0f);
}

#endif
