/* Loops whose turns use what they have summed up so far; a row a thread, grid m / 4, block 4. A
 * part of kernels.cu. */

#define ROW                                                                                        \
    int row = blockIdx.x * 4 + threadIdx.x;                                                        \
    if (row >= m)                                                                                  \
        return;                                                                                    \
    x += row * n;                                                                                  \
    y += row * n

/* The sum with the turn's own element. */
extern "C" __global__ void run_with(PARAMETERS) {
    ROW;
    float sum = 0;
    for (int j = 0; j < n; j++) {
        sum += x[j];
        y[j] = sum;
    }
}

/* The sum without it, from a start of its own; what is left is used behind the loop. */
extern "C" __global__ void run_before(PARAMETERS) {
    ROW;
    float sum = w[row % 3] + 1;
    for (int j = 0; j < n - 1; j++) {
        y[j] = sum;
        sum += x[j] * w[j];
    }
    y[n - 1] = sum;
}

/* Both, of two additions in a turn, the one between them as well. */
extern "C" __global__ void run_both(PARAMETERS) {
    ROW;
    float sum = 2;
    for (int j = 0; j < n; j++) {
        float before = sum;
        sum += x[j];
        float between = sum;
        sum -= w[j];
        y[j] = before + 2 * between + 4 * sum;
    }
}

/* Whole numbers, some of them left out, and a test of the sum. */
extern "C" __global__ void run_some(PARAMETERS) {
    ROW;
    int count = row;
    for (int j = 0; j < n; j++) {
        if (x[j] > 3)
            count += j + 1;
        if (count % 3 == 1)
            y[j] = (float)count;
    }
}

/* The greatest so far, a running sum beside it, and two sums that are used behind the loop. */
extern "C" __global__ void run_several(PARAMETERS) {
    ROW;
    float most = -1, sum = 0, total = 0;
    int over = 5;
    for (int j = 0; j < n - 1; j++) {
        most = fmaxf(most, x[j]);
        sum += most;
        y[j] = most + sum * 8;
        total += x[j];
        if (sum > 20)
            over++;
    }
    y[n - 1] = total + (float)over;
}

/* A sum of a sum. */
extern "C" __global__ void run_twice(PARAMETERS) {
    ROW;
    float once = 0, twice = 0;
    for (int j = 0; j < n; j++) {
        once += x[j];
        twice += once;
        y[j] = twice;
    }
}

/* The same of what stood before; the second sum stands first. */
extern "C" __global__ void run_twice_before(PARAMETERS) {
    ROW;
    float once = 1, twice = 0;
    for (int j = 0; j < n; j++) {
        twice += once;
        once += x[j];
        y[j] = twice;
    }
}

/* A load at the sum, which is in bounds in each turn. */
extern "C" __global__ void run_index(PARAMETERS) {
    ROW;
    int at = 0;
    for (int j = 0; j < n; j++) {
        y[j] = w[n * n + 8 - (n - 1) + at];
        at += x[j] < 8;
    }
}

/* A store at the sum; turns that add nothing write to one place. */
extern "C" __global__ void run_place(PARAMETERS) {
    ROW;
    int at = -1;
    for (int j = 0; j < n; j++) {
        at += x[j] > 3 || j == 0;
        y[at] = x[j];
    }
}

/* Steps so long that a round of them is all numbers of the type. */
extern "C" __global__ void run_far(PARAMETERS) {
    ROW;
    float sum = 0;
    for (unsigned j = 0; j < (unsigned)n << 26; j += 1u << 26) {
        sum += x[j >> 26];
        y[j >> 26] = sum;
    }
}

/* Downwards, by twos; what is between stays. */
extern "C" __global__ void run_down(PARAMETERS) {
    ROW;
    float sum = 0;
    for (int j = n - 1; j >= 1; j -= 2) {
        sum += x[j] + x[j - 1];
        y[j] = sum;
    }
}

/* In place of a loop in a loop, for each row of those that the thread has; a second counter. */
extern "C" __global__ void run_rows(PARAMETERS) {
    for (int row = blockIdx.x * 4 + threadIdx.x; row < m; row += 8) {
        float sum = 0;
        int at = row * n;
        for (int j = 0; j <= n - 1; j++, at++) {
            for (int k = 0; k < 3; k++)
                sum += x[at] * w[k];
            y[at] = sum;
        }
    }
}

/* What the loop adds depends on the sum. */
extern "C" __global__ void run_mixed(PARAMETERS) {
    ROW;
    float sum = 1;
    for (int j = 0; j < n; j++) {
        sum += x[j] * sum;
        y[j] = sum;
    }
}

/* The same by a branch. */
extern "C" __global__ void run_until(PARAMETERS) {
    ROW;
    float sum = 0;
    for (int j = 0; j < n; j++) {
        if (sum < 20)
            sum += x[j] + w[j % 2];
        y[j] = sum;
    }
}

/* The same by way of another sum, over the turns. */
extern "C" __global__ void run_round(PARAMETERS) {
    ROW;
    float sum = 0;
    int odd = 0;
    for (int j = 0; j < n; j++) {
        sum += (float)odd;
        if (sum > 3 * x[j])
            odd++;
        y[j] = sum;
    }
}

/* The sum is used, and written where a condition holds, before the addition. */
extern "C" __global__ void run_own(PARAMETERS) {
    ROW;
    float sum = 0;
    for (int j = 0; j < n; j++) {
        if (x[j] > 2)
            y[j] = sum;
        sum += x[j] + y[j];
    }
}

/* A use where a part of the turns come by, inside of the addition's condition. */
extern "C" __global__ void run_within(PARAMETERS) {
    ROW;
    float sum = 0;
    for (int j = 0; j < n; j++) {
        if (x[j] > 2) {
            sum += x[j];
            y[j] = sum;
        }
    }
}

/* All turns write to one place. */
extern "C" __global__ void run_once(PARAMETERS) {
    ROW;
    float sum = 0;
    for (int j = 0; j < n; j++) {
        sum += x[j];
        y[0] = sum;
    }
}

/* Sums of a range that begins at an argument, by an unsigned counter, which may wrap around near the
 * end of its type, and by a signed one, which may not overflow. */
extern "C" __global__ void range_unsigned(PARAMETERS) {
    ROW;
    float sum = 0;
    for (unsigned c = (unsigned)m; c < (unsigned)(m + n); c++)
        sum += x[c - (unsigned)m];
    y[0] = sum;
}

extern "C" __global__ void range_signed(PARAMETERS) {
    ROW;
    float sum = 0;
    for (int c = m; c < m + n; c++)
        sum += x[c - m];
    y[0] = sum;
}
