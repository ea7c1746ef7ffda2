/* The assignment of k-means: each pixel gets the nearest of the centres, which are in constant
 * memory. Colours are whole numbers, so all distances are exact. */
#define MOST 64

__constant__ int centres[3 * MOST];

extern "C" __global__ void kmeans(const unsigned char *pixels, int *nearest, int count, int clusters) {
    int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= count)
        return;
    int best = 0, least = 0x7fffffff;
    for (int c = 0; c < clusters; c++) {
        int red = pixels[3 * pixel] - centres[3 * c];
        int green = pixels[3 * pixel + 1] - centres[3 * c + 1];
        int blue = pixels[3 * pixel + 2] - centres[3 * c + 2];
        int distance = red * red + green * green + blue * blue;
        if (distance < least) {
            least = distance;
            best = c;
        }
    }
    nearest[pixel] = best;
}
