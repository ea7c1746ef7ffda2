__global__ void mandelbrot(int *iters, int width, int height, double x0, double y0, double scale, int max_iter) {
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px < width && py < height) {
        double cx = x0 + px * scale, cy = y0 + py * scale, x = 0, y = 0;
        int k = 0;
        while (x * x + y * y <= 4.0 && k < max_iter) {
            double t = x * x - y * y + cx;
            y = 2 * x * y + cy;
            x = t;
            k++;
        }
        iters[py * width + px] = k;
    }
}
int main() {
    int W = 800, H = 600;
    int *d;
    cudaMalloc(&d, W * H * sizeof(int));
    dim3 b(16, 16), g((W + b.x - 1) / b.x, (H + b.y - 1) / b.y);
    mandelbrot<<<g, b>>>(d, W, H, -2.0, -1.5, 3.0 / W, 1 << 12);
}
