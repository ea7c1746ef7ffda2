/* What NVRTC 13 and the like do in a process that has a driver: they ask the driver for private
 * tables (cuGetExportTable) and for functions by name and version (cuGetProcAddress_v2), and go on
 * without those that there are not. */
#include "tests/fitness/device/clients/client.h"

#include <dlfcn.h>

static void ask_for_table(void *library) {
    CUresult (*get)(const void **, const CUuuid *) = NULL;
    const CUuuid some = {{0x6b, (char)0xd5, (char)0xfb, 0x6c, 0x5b, (char)0xf4, (char)0xe7, 0x4a,
                          (char)0x89, (char)0x87, (char)0xd9, 0x39, 0x12, (char)0xfd, (char)0x9d,
                          (char)0xf9}};
    const void *table = &some;
    void *found = dlsym(library, "cuGetExportTable");
    MUST(found != NULL, "there is no cuGetExportTable");
    memcpy(&get, &found, sizeof get);
    CUresult result = get(&table, &some);
    MUST(result != CUDA_SUCCESS && table == NULL, "a table that is none");
}

static void ask_for_names(void) {
    void *found = NULL;
    int status = -1;
    CHECK(cuGetProcAddress_v2("cuGetProcAddress", &found, 13000, 0, &status));
    MUST(found != NULL && status == 0, "cuGetProcAddress does not find itself");
    CHECK(cuGetProcAddress_v2("cuNoSuchFunction", &found, 13000, 0, &status));
    MUST(found == NULL && status == 1, "a name that is none was found");
    CHECK(cuGetProcAddress_v2("cuCtxCreate", &found, 13000, 0, &status));
    CUresult (*create)(CUcontext *, const CUctxCreateParams *, unsigned, CUdevice) = NULL;
    memcpy(&create, &found, sizeof create);
    CUcontext context = NULL;
    CHECK(create(&context, NULL, 0, 0));
    CHECK(cuCtxDestroy_v2(context));
}

int main(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    MUST(library != NULL, "there is no libcuda.so.1");
    ask_for_table(library); /* before cuInit, too */
    CHECK(cuInit(0));
    ask_for_table(library);
    ask_for_names();
    printf("tables that are private: none; the rest: right\n");
    return 0;
}
