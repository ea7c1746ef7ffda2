#include <cstring>
#include <cstdio>
__global__ void count_and_upper(const char *text, char *out, int *counts, int length, char wanted) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int per = 64;
    int begin = i * per, end = min(begin + per, length);
    int c = 0;
    for (int k = begin; k < end; k++) {
        char ch = text[k];
        c += ch == wanted;
        out[k] = (ch >= 'a' && ch <= 'z') ? ch - 'a' + 'A' : ch;
    }
    if (begin < length) counts[i] = c;
}
int main() {
    static char text[1 << 16];
    int length = sizeof(text), chunks = (length + 63) / 64;
    char *a, *b; int *c;
    cudaMalloc(&a, length); cudaMalloc(&b, length); cudaMalloc(&c, chunks * sizeof(int));
    count_and_upper<<<(chunks + 127) / 128, 128>>>(a, b, c, length, 'e');
}
