/* Arrays, textures and surfaces through the driver's calls: a kernel fetches what copies put into
 * an array, and writes what they take out of one. */
#include "tests/fitness/device/driver_rig.h"

#define WIDTH ((size_t)8)
#define HEIGHT 4
#define DEPTH 3

/* out[i] = a texel; the surface gets twice its value. */
static const char flat[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry flat(.param .u64 t, .param .u64 s, .param .u64 out) {\n"
    ".reg .b64 %t, %s, %o; .reg .b32 %x, %y, %i; .reg .f32 %u, %v, %f<4>;\n"
    "ld.param.u64 %t, [t]; ld.param.u64 %s, [s]; ld.param.u64 %o, [out];\n"
    "mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mad.lo.u32 %i, %y, 8, %x;\n"
    "mad.wide.u32 %o, %i, 4, %o; cvt.rn.f32.u32 %u, %x; cvt.rn.f32.u32 %v, %y;\n"
    "add.f32 %u, %u, 0f3f000000; add.f32 %v, %v, 0f3f000000;\n"
    "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%u, %v}];\n"
    "st.global.f32 [%o], %f0; add.f32 %f0, %f0, %f0; shl.b32 %x, %x, 2;\n"
    "sust.b.2d.b32.trap [%s, {%x, %y}], {%f0};\nret;\n}\n"
    ".visible .entry line(.param .u64 t, .param .u64 out) {\n"
    ".reg .b64 %t, %o; .reg .b32 %x, %r<4>;\n"
    "ld.param.u64 %t, [t]; ld.param.u64 %o, [out]; mov.u32 %x, %tid.x;\n"
    "mad.wide.u32 %o, %x, 4, %o; tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%t, {%x}];\n"
    "st.global.u32 [%o], %r0;\nret;\n}\n"
    ".visible .entry layer(.param .u64 t, .param .u64 out) {\n"
    ".reg .b64 %t, %o; .reg .b32 %x, %r<4>; .reg .f32 %f;\n"
    "ld.param.u64 %t, [t]; ld.param.u64 %o, [out]; mov.u32 %x, %tid.x;\n"
    "mad.wide.u32 %o, %x, 4, %o; cvt.rn.f32.u32 %f, %x;\n"
    "tex.a2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%t, {2, %f, 0f3f800000, %f}];\n"
    "st.global.u32 [%o], %r0;\nret;\n}\n";

typedef struct work {
    CUcontext context;
    CUmodule module;
    CUdeviceptr out;
} work;

static work work_of(void) {
    work w = {.context = context_of(0)};
    OK(cu.cuModuleLoadData(&w.module, flat));
    OK(cu.cuMemAlloc_v2(&w.out, 4096));
    return w;
}

static void launch(const work *w, const char *name, unsigned x, unsigned y, void **params) {
    CUfunction f = NULL;
    OK(cu.cuModuleGetFunction(&f, w->module, name));
    OK(cu.cuLaunchKernel(f, 1, 1, 1, x, y, 1, 0, NULL, params, NULL));
}

static CUarray flat_array(void) {
    CUarray a = NULL;
    const CUarrayDescriptor what = {
        .Width = WIDTH, .Height = HEIGHT, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    OK(cu.cuArrayCreate_v2(&a, &what));
    return a;
}

static void copy_flat(CUarray to, CUarray from, float *host) {
    CUmemcpy2D c = {.srcMemoryType = from ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST,
                    .srcHost = host,
                    .srcArray = from,
                    .dstMemoryType = to ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST,
                    .dstHost = host,
                    .dstArray = to,
                    .WidthInBytes = WIDTH * 4,
                    .Height = HEIGHT};
    OK(cu.cuMemcpy2D_v2(&c));
}

static CUtextureDesc point(unsigned flags) {
    return (CUtextureDesc){.addressMode = {1, 1, 1}, .flags = flags};
}

static void test_flat(void **state) {
    (void)state;
    work w = work_of();
    CUarray from = flat_array(), to = flat_array();
    float texels[HEIGHT * WIDTH], got[HEIGHT * WIDTH];
    for (unsigned i = 0; i < HEIGHT * WIDTH; i++)
        texels[i] = (float)(i * i);
    copy_flat(from, NULL, texels);
    CUresourceDesc resource = {.res.array.hArray = from};
    const CUtextureDesc sampler = point(0);
    CUtexObject t = 0;
    CUsurfObject s = 0;
    OK(cu.cuTexObjectCreate(&t, &resource, &sampler, NULL));
    resource.res.array.hArray = to;
    OK(cu.cuSurfObjectCreate(&s, &resource));
    assert_true(t != 0 && s != 0 && s != t);
    void *params[] = {&t, &s, &w.out};
    launch(&w, "flat", WIDTH, HEIGHT, params);
    OK(cu.cuMemcpyDtoH_v2(got, w.out, sizeof got));
    assert_memory_equal(got, texels, sizeof got);
    copy_flat(NULL, to, got);
    for (unsigned i = 0; i < HEIGHT * WIDTH; i++)
        assert_true(got[i] == 2 * texels[i]);
    IS(INVALID_VALUE, cu.cuSurfObjectDestroy(t));
    OK(cu.cuTexObjectDestroy(t));
    IS(INVALID_VALUE, cu.cuTexObjectDestroy(t));
    OK(cu.cuSurfObjectDestroy(s));
    OK(cu.cuArrayDestroy(to));
    IS(INVALID_HANDLE, cu.cuArrayDestroy(to));
    launch(&w, "flat", WIDTH, HEIGHT, params); /* the texture is gone */
    assert_int_not_equal(cu.cuCtxSynchronize(), CUDA_SUCCESS);
    OK(cu.cuCtxDestroy_v2(w.context));
}

/* Textures of memory that is no array: by integers, and with a pitch. */
static void test_linear(void **state) {
    (void)state;
    work w = work_of();
    uint32_t numbers[64], got[64];
    CUdeviceptr memory = 0;
    size_t pitch = 0;
    OK(cu.cuMemAllocPitch_v2(&memory, &pitch, WIDTH * 4, HEIGHT, 4));
    for (unsigned i = 0; i < 64; i++)
        numbers[i] = i * 3 + 1;
    OK(cu.cuMemcpyHtoD_v2(memory, numbers, sizeof numbers));
    CUresourceDesc resource = {.resType = CU_RESOURCE_TYPE_LINEAR,
                               .res.linear = {.devPtr = memory,
                                              .format = CU_AD_FORMAT_UNSIGNED_INT32,
                                              .numChannels = 1,
                                              .sizeInBytes = 60 * 4}};
    const CUtextureDesc integers = point(CU_TRSF_READ_AS_INTEGER);
    CUtexObject t = 0;
    OK(cu.cuTexObjectCreate(&t, &resource, &integers, NULL));
    void *params[] = {&t, &w.out};
    launch(&w, "line", 64, 1, params);
    OK(cu.cuMemcpyDtoH_v2(got, w.out, sizeof got));
    assert_memory_equal(got, numbers, 60 * 4);
    for (unsigned i = 60; i < 64; i++)
        assert_int_equal(got[i], 0);
    resource = (CUresourceDesc){.resType = CU_RESOURCE_TYPE_PITCH2D,
                                .res.pitch2D = {.devPtr = memory,
                                                .format = CU_AD_FORMAT_FLOAT,
                                                .numChannels = 1,
                                                .width = WIDTH,
                                                .height = HEIGHT,
                                                .pitchInBytes = pitch}};
    OK(cu.cuTexObjectCreate(&t, &resource, &integers, NULL));
    resource.res.pitch2D.pitchInBytes = 8;
    IS(INVALID_VALUE, cu.cuTexObjectCreate(&t, &resource, &integers, NULL));
    IS(INVALID_VALUE, cu.cuSurfObjectCreate(&t, &resource));
    resource.resType = 1; /* mip-maps */
    IS(NOT_SUPPORTED, cu.cuTexObjectCreate(&t, &resource, &integers, NULL));
    OK(cu.cuCtxDestroy_v2(w.context));
}

/* Layers, filled by a copy of three dimensions, and by one of bytes. */
static void test_layers(void **state) {
    (void)state;
    work w = work_of();
    const CUarrayDescriptor3D what = {.Width = WIDTH,
                                      .Height = HEIGHT,
                                      .Depth = DEPTH,
                                      .Format = CU_AD_FORMAT_UNSIGNED_INT32,
                                      .NumChannels = 1,
                                      .Flags = CU_ARRAY3D_LAYERED};
    CUarray a = NULL;
    CUarrayDescriptor3D told;
    CUarrayDescriptor told_flat;
    uint32_t numbers[DEPTH * HEIGHT * WIDTH], got[DEPTH * HEIGHT * WIDTH];
    OK(cu.cuArray3DCreate_v2(&a, &what));
    OK(cu.cuArray3DGetDescriptor_v2(&told, a));
    assert_memory_equal(&told, &what, sizeof what);
    OK(cu.cuArrayGetDescriptor_v2(&told_flat, a));
    assert_int_equal(told_flat.Height, HEIGHT);
    for (unsigned i = 0; i < DEPTH * HEIGHT * WIDTH; i++)
        numbers[i] = i + 100;
    CUmemcpy3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                    .srcHost = numbers,
                    .srcPitch = WIDTH * 4,
                    .srcHeight = HEIGHT,
                    .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                    .dstArray = a,
                    .WidthInBytes = WIDTH * 4,
                    .Height = HEIGHT,
                    .Depth = DEPTH};
    OK(cu.cuMemcpy3D_v2(&c));
    c.Depth = DEPTH + 1;
    IS(INVALID_VALUE, cu.cuMemcpy3D_v2(&c));
    c.Depth = DEPTH;
    c.dstXInBytes = 4;
    IS(INVALID_VALUE, cu.cuMemcpy3DAsync_v2(&c, NULL));
    CUresourceDesc resource = {.res.array.hArray = a};
    const CUtextureDesc integers = point(CU_TRSF_READ_AS_INTEGER);
    CUtexObject t = 0;
    OK(cu.cuTexObjectCreate(&t, &resource, &integers, NULL));
    IS(INVALID_VALUE, cu.cuSurfObjectCreate(&t, &resource)); /* not made for surfaces */
    void *params[] = {&t, &w.out};
    launch(&w, "layer", WIDTH, 1, params);
    OK(cu.cuMemcpyDtoH_v2(got, w.out, WIDTH * 4));
    assert_memory_equal(got, numbers + (2 * HEIGHT + 1) * WIDTH, WIDTH * 4);
    OK(cu.cuMemcpyAtoH_v2(got, a, 8, 16));
    assert_memory_equal(got, numbers + 2, 16);
    OK(cu.cuMemcpyHtoA_v2(a, 0, numbers + 40, 16));
    OK(cu.cuMemcpyAtoD_v2(w.out, a, 0, 16));
    OK(cu.cuMemcpyDtoA_v2(a, 32, w.out, 16));
    OK(cu.cuMemcpyAtoH_v2(got, a, 32, 16));
    assert_memory_equal(got, numbers + 40, 16);
    IS(INVALID_VALUE, cu.cuMemcpyAtoH_v2(got, a, sizeof numbers, 4));
    OK(cu.cuCtxDestroy_v2(w.context));
}

/* Variables of a module, to which arrays are bound. */
static void test_references(void **state) {
    (void)state;
    static const char text[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n.global .texref t;\n.global .surfref s;\n"
        ".visible .entry copy() {\n.reg .b32 %x, %y; .reg .f32 %u, %v, %f<4>;\n"
        "mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; cvt.rn.f32.u32 %u, %x; cvt.rn.f32.u32 %v, %y;\n"
        "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [t, {%u, %v}]; shl.b32 %x, %x, 2;\n"
        "sust.b.2d.b32.trap [s, {%x, %y}], {%f0};\nret;\n}\n";
    work w = {.context = context_of(0)};
    CUarray from = flat_array(), to = flat_array();
    float texels[HEIGHT * WIDTH], got[HEIGHT * WIDTH];
    CUtexref t = NULL, again = NULL;
    CUsurfref s = NULL;
    for (unsigned i = 0; i < HEIGHT * WIDTH; i++)
        texels[i] = (float)i;
    copy_flat(from, NULL, texels);
    OK(cu.cuModuleLoadData(&w.module, text));
    IS(NOT_FOUND, cu.cuModuleGetTexRef(&t, w.module, "s"));
    OK(cu.cuModuleGetTexRef(&t, w.module, "t"));
    OK(cu.cuModuleGetTexRef(&again, w.module, "t"));
    assert_ptr_equal(t, again);
    OK(cu.cuModuleGetSurfRef(&s, w.module, "s"));
    OK(cu.cuTexRefSetFormat(t, CU_AD_FORMAT_FLOAT, 1));
    OK(cu.cuTexRefSetArray(t, from, CU_TRSA_OVERRIDE_FORMAT));
    OK(cu.cuTexRefSetAddressMode(t, 0, 1));
    OK(cu.cuTexRefSetAddressMode(t, 1, 1));
    OK(cu.cuTexRefSetFlags(t, 0));
    OK(cu.cuSurfRefSetArray(s, to, 0));
    launch(&w, "copy", WIDTH, HEIGHT, NULL);
    copy_flat(NULL, to, got);
    assert_memory_equal(got, texels, sizeof got);
    OK(cu.cuTexRefSetFilterMode(t, 1)); /* the mean of four texels; of one at the corner */
    launch(&w, "copy", WIDTH, HEIGHT, NULL);
    copy_flat(NULL, to, got);
    assert_true(got[0] == 0 && got[1] == 0.5f && got[WIDTH + 1] == 4.5f);
    IS(INVALID_HANDLE, cu.cuTexRefSetFlags((CUtexref)s, 0));
    IS(INVALID_VALUE, cu.cuTexRefSetAddressMode(t, 3, 0));
    OK(cu.cuModuleUnload(w.module));
    IS(INVALID_HANDLE, cu.cuTexRefSetFlags(t, 0));
    OK(cu.cuCtxDestroy_v2(w.context));
}

static void test_bad_arrays(void **state) {
    (void)state;
    work w = work_of();
    CUarray a = NULL;
    CUarrayDescriptor3D what = {.Width = 8, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 3};
    IS(INVALID_VALUE, cu.cuArray3DCreate_v2(&a, &what));
    what.NumChannels = 1;
    what.Format = 0x99;
    IS(INVALID_VALUE, cu.cuArray3DCreate_v2(&a, &what));
    what.Format = CU_AD_FORMAT_FLOAT;
    what.Flags = CU_ARRAY3D_CUBEMAP;
    IS(INVALID_VALUE, cu.cuArray3DCreate_v2(&a, &what));
    what.Flags = 0x40; /* sparse */
    IS(NOT_SUPPORTED, cu.cuArray3DCreate_v2(&a, &what));
    what.Flags = 0;
    what.Width = 0;
    IS(INVALID_VALUE, cu.cuArray3DCreate_v2(&a, &what));
    CUtexObject t = 0;
    CUresourceDesc resource = {.res.array.hArray = NULL};
    CUtextureDesc sampler = point(0);
    IS(INVALID_HANDLE, cu.cuTexObjectCreate(&t, &resource, &sampler, NULL));
    resource.res.array.hArray = flat_array();
    sampler.filterMode = 2;
    IS(INVALID_VALUE, cu.cuTexObjectCreate(&t, &resource, &sampler, NULL));
    sampler = point(0x10); /* sRGB */
    IS(NOT_SUPPORTED, cu.cuTexObjectCreate(&t, &resource, &sampler, NULL));
    OK(cu.cuCtxDestroy_v2(w.context));
    context_of(0);
    IS(INVALID_HANDLE, cu.cuArrayDestroy(resource.res.array.hArray)); /* gone with its context */
}

static int open_driver(void **state) {
    (void)state;
    rig_open_driver("h200");
    OK(cu.cuInit(0));
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flat),       cmocka_unit_test(test_linear),
        cmocka_unit_test(test_layers),     cmocka_unit_test(test_references),
        cmocka_unit_test(test_bad_arrays),
    };
    return cmocka_run_group_tests(tests, open_driver, NULL);
}
