/* A step of breadth-first search: a vertex without a level gets one if an edge leads to it from the
 * last level. Each vertex looks back along its edges, so no two threads write one place. */
struct Graph {
    const int *edges; /* [vertices][degree] */
    int vertices, degree;
};

extern "C" __global__ void bfs(Graph graph, const int *before, int *after, int level) {
    int vertex = blockIdx.x * blockDim.x + threadIdx.x;
    if (vertex >= graph.vertices)
        return;
    int own = before[vertex];
    for (int i = 0; i < graph.degree && own < 0; i++) {
        if (before[graph.edges[vertex * graph.degree + i]] == level)
            own = level + 1;
    }
    after[vertex] = own;
}
