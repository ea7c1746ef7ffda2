// A struct by value: a task has no such argument.
struct Params { int width, height; float scale; };
__global__ void scale_image(const unsigned char *in, unsigned char *out, Params p) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < p.width && y < p.height) out[y * p.width + x] = in[y * p.width + x] * p.scale;
}
