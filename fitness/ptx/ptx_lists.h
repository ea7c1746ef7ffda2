/* Type lists: the `types` columns of ptx_ops.def. PTX_LIST_X(M, ...) expands to M(type, ...) for
 * each type of the list, so one row makes one handler for each type. */
#ifndef FITNESS_PTX_PTX_LISTS_H
#define FITNESS_PTX_PTX_LISTS_H

#define PTX_LIST_NONE(M, ...) M(none, __VA_ARGS__)
#define PTX_LIST_U32(M, ...) M(u32, __VA_ARGS__)
#define PTX_LIST_U64(M, ...) M(u64, __VA_ARGS__)
#define PTX_LIST_S32(M, ...) M(s32, __VA_ARGS__)
#define PTX_LIST_B32(M, ...) M(b32, __VA_ARGS__)
#define PTX_LIST_F32(M, ...) M(f32, __VA_ARGS__)
#define PTX_LIST_F64(M, ...) M(f64, __VA_ARGS__)
#define PTX_LIST_PRED(M, ...) M(pred, __VA_ARGS__)
#define PTX_LIST_F16(M, ...) M(f16, __VA_ARGS__)
#define PTX_LIST_BF16(M, ...) M(bf16, __VA_ARGS__)
#define PTX_LIST_TF32(M, ...) M(tf32, __VA_ARGS__)
#define PTX_LIST_B16(M, ...) M(b16, __VA_ARGS__)
#define PTX_LIST_B1(M, ...) M(b1, __VA_ARGS__)
#define PTX_LIST_I8(M, ...) M(u8, __VA_ARGS__) M(s8, __VA_ARGS__)
#define PTX_LIST_I4(M, ...) M(u4, __VA_ARGS__) M(s4, __VA_ARGS__)
#define PTX_LIST_HF(M, ...) M(f16, __VA_ARGS__) M(f32, __VA_ARGS__)
#define PTX_LIST_W32(M, ...) M(u32, __VA_ARGS__) M(s32, __VA_ARGS__)
#define PTX_LIST_W64(M, ...) M(u64, __VA_ARGS__) M(s64, __VA_ARGS__)
#define PTX_LIST_U3264(M, ...) M(u32, __VA_ARGS__) M(u64, __VA_ARGS__)
#define PTX_LIST_WW(M, ...) PTX_LIST_W32(M, __VA_ARGS__) PTX_LIST_W64(M, __VA_ARGS__)
#define PTX_LIST_I1632(M, ...) M(u16, __VA_ARGS__) M(s16, __VA_ARGS__) PTX_LIST_W32(M, __VA_ARGS__)
#define PTX_LIST_I(M, ...) PTX_LIST_I1632(M, __VA_ARGS__) PTX_LIST_W64(M, __VA_ARGS__)
#define PTX_LIST_SI(M, ...) M(s16, __VA_ARGS__) M(s32, __VA_ARGS__) M(s64, __VA_ARGS__)
#define PTX_LIST_B3264(M, ...) M(b32, __VA_ARGS__) M(b64, __VA_ARGS__)
#define PTX_LIST_B(M, ...) M(b16, __VA_ARGS__) PTX_LIST_B3264(M, __VA_ARGS__)
#define PTX_LIST_BI(M, ...) PTX_LIST_B(M, __VA_ARGS__) PTX_LIST_I(M, __VA_ARGS__)
#define PTX_LIST_F(M, ...) M(f32, __VA_ARGS__) M(f64, __VA_ARGS__)
#define PTX_LIST_H(M, ...) M(f16, __VA_ARGS__) M(bf16, __VA_ARGS__)
#define PTX_LIST_X(M, ...) M(f16x2, __VA_ARGS__) M(bf16x2, __VA_ARGS__)
#define PTX_LIST_X16(M, ...) M(u16x2, __VA_ARGS__) M(s16x2, __VA_ARGS__)
#define PTX_LIST_HX(M, ...) PTX_LIST_H(M, __VA_ARGS__) PTX_LIST_X(M, __VA_ARGS__)
#define PTX_LIST_FH(M, ...) PTX_LIST_F(M, __VA_ARGS__) PTX_LIST_H(M, __VA_ARGS__)
#define PTX_LIST_BIF(M, ...) PTX_LIST_BI(M, __VA_ARGS__) PTX_LIST_F(M, __VA_ARGS__)
#define PTX_LIST_CMP(M, ...)                                                                       \
    PTX_LIST_B(M, __VA_ARGS__) PTX_LIST_I(M, __VA_ARGS__) PTX_LIST_FH(M, __VA_ARGS__)
#define PTX_LIST_SETD(M, ...) PTX_LIST_W32(M, __VA_ARGS__) M(f32, __VA_ARGS__)
#define PTX_LIST_SETH(M, ...)                                                                      \
    M(u16, __VA_ARGS__) M(s16, __VA_ARGS__) M(f16, __VA_ARGS__) M(bf16, __VA_ARGS__)
#define PTX_LIST_SETX(M, ...) PTX_LIST_W32(M, __VA_ARGS__) PTX_LIST_X(M, __VA_ARGS__)
#define PTX_LIST_F16X2(M, ...) M(f16x2, __VA_ARGS__)
#define PTX_LIST_F8X2(M, ...) M(e4m3x2, __VA_ARGS__) M(e5m2x2, __VA_ARGS__)
#define PTX_LIST_X16SAT(M, ...) M(u16, __VA_ARGS__) M(s16, __VA_ARGS__)
#define PTX_LIST_X8SAT(M, ...)                                                                     \
    PTX_LIST_I8(M, __VA_ARGS__)                                                                    \
    PTX_LIST_I4(M, __VA_ARGS__) M(u2, __VA_ARGS__) M(s2, __VA_ARGS__)
#define PTX_LIST_B8TO64(M, ...) M(b8, __VA_ARGS__) PTX_LIST_B(M, __VA_ARGS__)
#define PTX_LIST_TEXEL(M, ...) PTX_LIST_SETD(M, __VA_ARGS__) M(f16, __VA_ARGS__)
#define PTX_LIST_TEXAT(M, ...) M(s32, __VA_ARGS__) M(f32, __VA_ARGS__)
#define PTX_LIST_SLCTC(M, ...) M(s32, __VA_ARGS__) M(f32, __VA_ARGS__)
#define PTX_LIST_MOV(M, ...) PTX_LIST_BIF(M, __VA_ARGS__)
#define PTX_LIST_CVT(M, ...)                                                                       \
    M(u8, __VA_ARGS__)                                                                             \
    M(s8, __VA_ARGS__)                                                                             \
    PTX_LIST_I(M, __VA_ARGS__) PTX_LIST_H(M, __VA_ARGS__) PTX_LIST_F(M, __VA_ARGS__)
#define PTX_LIST_MEM(M, ...)                                                                       \
    M(b8, __VA_ARGS__)                                                                             \
    M(u8, __VA_ARGS__) M(s8, __VA_ARGS__) PTX_LIST_BIF(M, __VA_ARGS__)
#define PTX_LIST_ADDI(M, ...) PTX_LIST_W32(M, __VA_ARGS__) M(u64, __VA_ARGS__)
/* A list under a second name, to be nested inside the first. */
#define PTX_LIST2_CVT(M, ...)                                                                      \
    M(u8, __VA_ARGS__)                                                                             \
    M(s8, __VA_ARGS__)                                                                             \
    M(u16, __VA_ARGS__)                                                                            \
    M(s16, __VA_ARGS__)                                                                            \
    M(u32, __VA_ARGS__)                                                                            \
    M(s32, __VA_ARGS__)                                                                            \
    M(u64, __VA_ARGS__)                                                                            \
    M(s64, __VA_ARGS__)                                                                            \
    M(f16, __VA_ARGS__) M(bf16, __VA_ARGS__) M(f32, __VA_ARGS__) M(f64, __VA_ARGS__)
/* The comparisons of set and setp: name, expression over a and b of one type. */
#define PTX_COMPARISONS(M, ...)                                                                    \
    M(EQ, a == b, __VA_ARGS__)                                                                     \
    M(NE, !PTX_UNORDERED(a, b) && a != b, __VA_ARGS__)                                             \
    M(LT, a < b, __VA_ARGS__)                                                                      \
    M(LE, a <= b, __VA_ARGS__)                                                                     \
    M(GT, a > b, __VA_ARGS__)                                                                      \
    M(GE, a >= b, __VA_ARGS__)
#define PTX_COMPARISONS_U(M, ...)                                                                  \
    M(CLO, a < b, __VA_ARGS__)                                                                     \
    M(CLS, a <= b, __VA_ARGS__) M(CHI, a > b, __VA_ARGS__) M(CHS, a >= b, __VA_ARGS__)
#define PTX_COMPARISONS_F(M, ...)                                                                  \
    M(EQU, PTX_UNORDERED(a, b) || a == b, __VA_ARGS__)                                             \
    M(NEU, a != b, __VA_ARGS__)                                                                    \
    M(LTU, !(a >= b), __VA_ARGS__)                                                                 \
    M(LEU, !(a > b), __VA_ARGS__)                                                                  \
    M(GTU, !(a <= b), __VA_ARGS__)                                                                 \
    M(GEU, !(a < b), __VA_ARGS__)                                                                  \
    M(NUM, !PTX_UNORDERED(a, b), __VA_ARGS__)                                                      \
    M(ISNAN, PTX_UNORDERED(a, b), __VA_ARGS__)
#define PTX_UNORDERED(a, b) ((a) != (a) || (b) != (b))

#endif
