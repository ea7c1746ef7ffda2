/* Sums of products of circulant blocks by the fast Fourier transform, for the hand-tuned starts of
 * block-circulant layers (bc_bp_data, bc_bp_weight).
 *
 * A block of threads has a tile of na x nb outputs. An output is a sum over many terms of
 * B-vector * conj(A-vector) in the domain of frequencies, each vector of k elements, k a power of
 * two up to 128. How to read it:
 *
 * - Eight threads transform a chunk of 128 numbers, 16 a thread: one vector of 128, two of 64, ...
 *   32 of 4, which are as many terms of the sum. Stages at distances 64 to 8 are between registers;
 *   one exchange through shared memory later, so are those at distances 4 to 1. The factors between
 *   the two halves are made once (circulant_lane_of). Each k has code of its own, without the
 *   stages that it does not need.
 * - A transform goes from natural to bit-reversed order (decimation in frequency), its inverse goes
 *   back (decimation in time), so nothing is reordered.
 * - A transform has two real vectors, one as the real and one as the imaginary part.
 * - A team of 128 threads transforms up to 16 chunks in a turn, then each of its threads multiplies
 *   one bin of them, with na x nb sums in registers. The loads of a turn begin a turn ahead. At the
 *   end the teams' sums are added up, in order.
 * - In shared memory a float2 of padding follows each 16, so that transforms, exchange and products
 *   have no conflicts of banks.
 *
 * Source: J. W. Cooley and J. W. Tukey 1965; two real transforms in one: J. W. Cooley, P. A. W.
 * Lewis and P. D. Welch, "The fast Fourier transform algorithm: programming considerations in the
 * calculation of sine, cosine and Laplace transforms", 1970. */
#ifndef KERNELS_INCLUDE_EVOKE_CIRCULANT_H
#define KERNELS_INCLUDE_EVOKE_CIRCULANT_H

#define CIRCULANT_FN static __device__ __forceinline__
#define CIRCULANT_CHUNK 128
#define CIRCULANT_SLOT 136 /* float2 that a chunk takes in shared memory */
#define CIRCULANT_LANES 8  /* threads of a transform */
#define CIRCULANT_OWN 16   /* numbers of such a thread */
#define CIRCULANT_TEAM 128 /* threads of a team */
#define CIRCULANT_GROUPS (CIRCULANT_TEAM / CIRCULANT_LANES)

/* Sizes of a block of threads with `teams` teams, where a term of the sum has `slots` chunks: the
 * terms' chunks of a team's turn, and the float2 of shared memory, which 45 slots fill. */
#define CIRCULANT_LESS(a, b) ((a) < (b) ? (a) : (b))
#define CIRCULANT_MOST(a, b) ((a) > (b) ? (a) : (b))
#define CIRCULANT_TURN(teams, slots)                                                               \
    CIRCULANT_LESS(CIRCULANT_GROUPS / (slots), 45 / ((teams) * (slots)))
#define CIRCULANT_SHARED(teams, slots, outputs)                                                    \
    (CIRCULANT_MOST((teams) * CIRCULANT_TURN(teams, slots) * (slots), outputs) * CIRCULANT_SLOT)

/* Two real operands of a transform: `terms` vectors of k numbers each, `stride` apart. In the last
 * term of an odd number of rows, `im` may have none (im_terms is then terms - 1): zeros. */
typedef struct circulant_rows {
    const float *re, *im;
    int terms, im_terms;
    int stride;
} circulant_rows;

/* What a thread keeps: its place in a transform, and the factors between the halves of one. */
typedef struct circulant_lane {
    int lane; /* 0 to 7 */
    int k, log2_k;
    float2 twiddle[CIRCULANT_OWN / 2], top; /* of register r: twiddle[r], and twiddle[r - 8] top */
} circulant_lane;

CIRCULANT_FN float2 circulant_times(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

/* a times the conjugate of b. */
CIRCULANT_FN float2 circulant_correlate(float2 a, float2 b) {
    return make_float2(a.x * b.x + a.y * b.y, a.y * b.x - a.x * b.y);
}

/* v turned by n sixteenths of a circle, clockwise; n is a constant from 0 to 7. The products by h
 * are rounded by themselves: otherwise the compiler's choice of the product that it fuses with a
 * later sum would decide the bits. */
CIRCULANT_FN float2 circulant_turn(float2 v, int n) {
    const float c = 0.92387953251128674f, s = 0.38268343236508977f, h = 0.70710678118654752f;
    switch (n) {
    case 0:
        return v;
    case 1:
        return circulant_times(v, make_float2(c, -s));
    case 2:
        return make_float2(__fmul_rn(v.x + v.y, h), __fmul_rn(v.y - v.x, h));
    case 3:
        return circulant_times(v, make_float2(s, -c));
    case 4:
        return make_float2(v.y, -v.x);
    case 5:
        return circulant_times(v, make_float2(-s, -c));
    case 6:
        return make_float2(__fmul_rn(v.y - v.x, h), __fmul_rn(-v.x - v.y, h));
    default:
        return circulant_times(v, make_float2(-c, -s));
    }
}

/* The same, counterclockwise. */
CIRCULANT_FN float2 circulant_turn_back(float2 v, int n) {
    float2 r = circulant_turn(make_float2(v.x, -v.y), n);
    return make_float2(r.x, -r.y);
}

/* A stage between the registers r and r + half. */
CIRCULANT_FN void circulant_stage(float2 v[CIRCULANT_OWN], int half) {
#pragma unroll
    for (int r = 0; r < CIRCULANT_OWN; r++) {
        if ((r & half) == 0) {
            float2 a = v[r], b = v[r + half];
            v[r] = make_float2(a.x + b.x, a.y + b.y);
            v[r + half] =
                circulant_turn(make_float2(a.x - b.x, a.y - b.y), (r & (half - 1)) * (8 / half));
        }
    }
}

CIRCULANT_FN void circulant_stage_back(float2 v[CIRCULANT_OWN], int half) {
#pragma unroll
    for (int r = 0; r < CIRCULANT_OWN; r++) {
        if ((r & half) == 0) {
            float2 a = v[r];
            float2 b = circulant_turn_back(v[r + half], (r & (half - 1)) * (8 / half));
            v[r] = make_float2(a.x + b.x, a.y + b.y);
            v[r + half] = make_float2(a.x - b.x, a.y - b.y);
        }
    }
}

/* The factors of a thread, by way of a table in shared memory, where each is computed once: the
 * product of those of the stages that k has. All threads of the block call this, while no one else
 * uses `table`. */
CIRCULANT_FN circulant_lane circulant_lane_of(int k, float2 *table) {
    circulant_lane l;
    l.lane = threadIdx.x % CIRCULANT_LANES;
    l.k = k;
    l.log2_k = 31 - __clz(k);
    const int entry = threadIdx.x / CIRCULANT_LANES;
    if (entry <= CIRCULANT_OWN / 2) {
        float turns = 0.0f; /* halves of a circle; exact */
#pragma unroll
        for (int bit = 1; bit <= CIRCULANT_OWN / 2; bit *= 2) {
            if ((entry & bit) && k > CIRCULANT_LANES * bit)
                turns -= (float)l.lane / (float)(CIRCULANT_LANES * bit);
        }
        float2 unit;
        sincospif(turns, &unit.y, &unit.x);
        table[threadIdx.x] = unit;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < CIRCULANT_OWN / 2; r++)
        l.twiddle[r] = table[r * CIRCULANT_LANES + l.lane];
    l.top = table[CIRCULANT_OWN / 2 * CIRCULANT_LANES + l.lane];
    __syncthreads();
    return l;
}

/* The factor of register r between the halves of a transform. */
CIRCULANT_FN float2 circulant_twiddle(const circulant_lane *l, int r) {
    const float2 low = l->twiddle[r % (CIRCULANT_OWN / 2)];
    if (r < CIRCULANT_OWN / 2)
        return low;
    return r == CIRCULANT_OWN / 2 ? l->top : circulant_times(low, l->top);
}

/* A thread's numbers of a chunk, 8 r + lane; behind the last term, any numbers of the first, which
 * circulant_multiply leaves out. No branch is taken, so that all loads are under way at once. */
template <int log2_k>
CIRCULANT_FN void circulant_load(const circulant_rows *from, int chunk, int last, int lane,
                                 float2 v[CIRCULANT_OWN]) {
    enum { k = 1 << log2_k, every = k > CIRCULANT_LANES ? k / CIRCULANT_LANES : 1 };
    const int own = lane >> log2_k; /* not 0 where eight numbers are more than one vector */
    const int first = min(chunk, last) * (CIRCULANT_CHUNK >> log2_k) + own, at = lane & (k - 1);
    const int step = from->stride * (k < CIRCULANT_LANES ? CIRCULANT_LANES / k : 1);
    const float *re = from->re + (size_t)first * from->stride;
    const float *im = from->im + (size_t)first * from->stride;
#pragma unroll
    for (int r = 0; r < CIRCULANT_OWN; r += every) {
        const int term = first + ((CIRCULANT_LANES * r) >> log2_k);
        const float *a = (term < from->terms ? re : from->re) + at;
        const float *b = (term < from->im_terms ? im : from->im) + at;
#pragma unroll
        for (int n = 0; n < every; n++)
            v[r + n] = make_float2(__ldg(a + CIRCULANT_LANES * n), __ldg(b + CIRCULANT_LANES * n));
        re += step;
        im += step;
    }
}

/* Zeros for imaginary parts that are not there. Apart from circulant_load, so that nothing waits
 * for the loads before they are needed. */
template <int log2_k>
CIRCULANT_FN void circulant_clear(const circulant_rows *from, int chunk, int lane,
                                  float2 v[CIRCULANT_OWN]) {
    const int first = chunk * (CIRCULANT_CHUNK >> log2_k) + (lane >> log2_k);
#pragma unroll
    for (int r = 0; r < CIRCULANT_OWN; r++) {
        const int term = first + ((CIRCULANT_LANES * r) >> log2_k);
        v[r].y = term < from->im_terms ? v[r].y : 0.0f;
    }
}

/* From the numbers of circulant_load to bins, which are left in `slot`. */
template <int log2_k>
CIRCULANT_FN void circulant_transform(float2 v[CIRCULANT_OWN], const circulant_lane *l,
                                      float2 *slot) {
    enum { k = 1 << log2_k, far = k / CIRCULANT_LANES };
#pragma unroll
    for (int half = far / 2; half >= 1; half /= 2)
        circulant_stage(v, half);
#pragma unroll
    for (int r = 0; r < CIRCULANT_OWN; r++) {
        const int n = far > 1 ? r % (far > 1 ? far : 1) : 0;
        slot[8 * r + r / 2 + l->lane] =
            n > 0 ? circulant_times(v[r], circulant_twiddle(l, n)) : v[r];
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < CIRCULANT_OWN; r++)
        v[r] = slot[17 * l->lane + r];
#pragma unroll
    for (int half = k > 4 ? 4 : k / 2; half >= 1; half /= 2)
        circulant_stage(v, half);
#pragma unroll
    for (int r = 0; r < CIRCULANT_OWN; r++)
        slot[17 * l->lane + r] = v[r];
}

/* From the bins in `slot` back to numbers, times k. All threads of a warp call this; those whose
 * chunk is not there (`is_there`) do nothing. */
CIRCULANT_FN void circulant_invert(float2 v[CIRCULANT_OWN], const circulant_lane *l, float2 *slot,
                                   bool is_there) {
#pragma unroll
    for (int r = 0; r < CIRCULANT_OWN; r++)
        v[r] = make_float2(0.0f, 0.0f);
    if (is_there) {
#pragma unroll
        for (int r = 0; r < CIRCULANT_OWN; r++)
            v[r] = slot[17 * l->lane + r];
#pragma unroll
        for (int half = 1; half <= 4; half *= 2) {
            if (l->k > half)
                circulant_stage_back(v, half);
        }
#pragma unroll
        for (int r = 0; r < CIRCULANT_OWN; r++)
            slot[17 * l->lane + r] = v[r];
    }
    __syncwarp();
    if (is_there) {
#pragma unroll
        for (int r = 0; r < CIRCULANT_OWN; r++)
            v[r] = circulant_correlate(slot[8 * r + r / 2 + l->lane], circulant_twiddle(l, r));
#pragma unroll
        for (int half = 1; half <= 8; half *= 2) {
            if (l->k > CIRCULANT_LANES * half)
                circulant_stage_back(v, half);
        }
    }
}

CIRCULANT_FN int circulant_place(int e) {
    return e + e / 16;
}

/* The place of the bin -f, where e is that of the bin f of its vector: in bit-reversed order, all
 * bits below the highest 1 are flipped. */
CIRCULANT_FN int circulant_mirror(int e, int k) {
    const int bin = e & (k - 1);
    return circulant_place(bin == 0 ? e : e ^ ((1 << (31 - __clz(bin))) - 1));
}

/* One bin of the A-vectors of a term. If is_packed, a chunk holds two of them, z = a + i b, and the
 * results are 2 a and 2 b; otherwise one that is used as it is. */
template <int na, bool is_packed>
CIRCULANT_FN void circulant_bins(const float2 *slots, int place, int mirror, float2 a[na]) {
#pragma unroll
    for (int m = 0; m < na; m += is_packed ? 2 : 1) {
        const float2 *slot = slots + (is_packed ? m / 2 : m) * CIRCULANT_SLOT;
        const float2 z = slot[place];
        a[m] = z;
        if (is_packed) {
            const float2 c = slot[mirror];
            a[m] = make_float2(z.x + c.x, z.y - c.y);
            a[m + 1] = make_float2(z.y + c.y, c.x - z.x);
        }
    }
}

/* Adds the products of one bin of a term's A- and B-vectors to the sums, if the term is there. */
template <int na, int nb, bool is_packed>
CIRCULANT_FN void circulant_multiply(const float2 *slots, int place, int mirror, bool is_there,
                                     float2 *sum) {
    float2 a[na];
    circulant_bins<na, is_packed>(slots, place, mirror, a);
#pragma unroll
    for (int m = 0; m < na; m++)
        a[m] = make_float2(is_there ? a[m].x : 0.0f, is_there ? a[m].y : 0.0f);
    slots += (is_packed ? na / 2 : na) * CIRCULANT_SLOT + place;
#pragma unroll
    for (int n = 0; n < nb; n++) {
        const float2 b = slots[n * CIRCULANT_SLOT];
#pragma unroll
        for (int m = 0; m < na; m++) {
            float2 *s = &sum[m * nb + n];
            s->x += a[m].x * b.x;
            s->x += a[m].y * b.y;
            s->y += a[m].x * b.y;
            s->y -= a[m].y * b.x;
        }
    }
}

/* Adds up the teams' sums of a bin: those of output n end in slot n. */
template <int outputs, int teams>
CIRCULANT_FN void circulant_gather(const float2 *sum, float2 *spectra) {
    const int team = threadIdx.x / CIRCULANT_TEAM;
    float2 *own = spectra + circulant_place(threadIdx.x % CIRCULANT_TEAM);
#pragma unroll
    for (int turn = 0; turn < teams; turn++) {
        if (team == turn) {
#pragma unroll
            for (int n = 0; n < outputs; n++) {
                float2 v = sum[n];
                if (turn > 0) {
                    v.x += own[n * CIRCULANT_SLOT].x;
                    v.y += own[n * CIRCULANT_SLOT].y;
                }
                own[n * CIRCULANT_SLOT] = v;
            }
        }
        __syncthreads();
    }
}

/* Adds up the vectors that share a chunk, so that the k bins of output n end at n k. Each 128 of
 * these are a chunk for circulant_invert. */
template <int outputs, int teams>
CIRCULANT_FN void circulant_fold(const circulant_lane *l, float2 *spectra) {
    enum { threads = CIRCULANT_TEAM * teams, bins = CIRCULANT_MOST(outputs * 64, 128) };
    float2 folded[(bins + threads - 1) / threads];
    const int filled = CIRCULANT_MOST(outputs * l->k, CIRCULANT_CHUNK);
#pragma unroll
    for (int m = 0; m * threads < bins; m++) {
        const int at = m * threads + threadIdx.x, n = at >> l->log2_k;
        folded[m] = make_float2(0.0f, 0.0f);
        if (n < outputs) {
            for (int bin = at & (l->k - 1); bin < CIRCULANT_CHUNK; bin += l->k) {
                float2 v = spectra[n * CIRCULANT_SLOT + circulant_place(bin)];
                folded[m] = make_float2(folded[m].x + v.x, folded[m].y + v.y);
            }
        }
    }
    __syncthreads();
#pragma unroll
    for (int m = 0; m * threads < bins; m++) {
        const int at = m * threads + threadIdx.x;
        if (at < filled)
            spectra[circulant_place(at)] = folded[m];
    }
    __syncthreads();
}

/* The group of eight threads that this thread is of, in its team. Where a turn leaves a warp idle,
 * teams leave unlike warps idle, which are those of unlike schedulers. */
CIRCULANT_FN int circulant_group(void) {
    const int team = threadIdx.x / CIRCULANT_TEAM;
    return (threadIdx.x / CIRCULANT_LANES + 4 * team) % CIRCULANT_GROUPS;
}

/* All products: `from` is what this thread's group transforms (slot circulant_group() % slots, A
 * first), if its number is below the turn's; `terms` are those of the sum. The bins of output
 * a * nb + b end in `spectra` as circulant_gather says. */
template <int log2_k, int na, int nb, int teams, bool is_packed>
CIRCULANT_FN void circulant_sum(const circulant_rows *from, int terms, const circulant_lane *l,
                                float2 *spectra) {
    enum {
        k = 1 << log2_k,
        a_slots = is_packed ? na / 2 : na,
        slots_each = a_slots + nb,
        turn_chunks = CIRCULANT_TURN(teams, slots_each),
        tasks = turn_chunks * slots_each
    };
    static_assert(tasks % 4 == 0 && tasks > 0, "a warp has four transforms or none");
    const int group = circulant_group(), team = threadIdx.x / CIRCULANT_TEAM;
    const int chunks = (terms * k + CIRCULANT_CHUNK - 1) / CIRCULANT_CHUNK;
    const int e = threadIdx.x % CIRCULANT_TEAM, place = circulant_place(e);
    const int mirror = circulant_mirror(e, k);
    float2 *mine = spectra + team * tasks * CIRCULANT_SLOT;
    float2 sum[na * nb] = {}, next[CIRCULANT_OWN] = {};

    int chunk = team * turn_chunks + group / slots_each;
    if (group < tasks)
        circulant_load<log2_k>(from, chunk, chunks - 1, l->lane, next);
    for (int first = 0; first < chunks; first += teams * turn_chunks) {
        if (group < tasks) {
            float2 v[CIRCULANT_OWN];
#pragma unroll
            for (int r = 0; r < CIRCULANT_OWN; r++)
                v[r] = next[r];
            if (!is_packed)
                circulant_clear<log2_k>(from, chunk, l->lane, v);
            chunk += teams * turn_chunks;
            circulant_load<log2_k>(from, chunk, chunks - 1, l->lane, next);
            circulant_transform<log2_k>(v, l, mine + group * CIRCULANT_SLOT);
        }
        __syncthreads();
#pragma unroll
        for (int t = 0; t < turn_chunks; t++) {
            const int term = ((first + team * turn_chunks + t) * CIRCULANT_CHUNK + e) >> log2_k;
            circulant_multiply<na, nb, is_packed>(mine + t * slots_each * CIRCULANT_SLOT, place,
                                                  mirror, term < terms, sum);
        }
        __syncthreads();
    }
    circulant_gather<na * nb, teams>(sum, spectra);
}

/* circulant_sum, with code of its own for each size of a block; then circulant_fold. */
template <int na, int nb, int teams, bool is_packed>
CIRCULANT_FN void circulant_products(const circulant_rows *from, int terms, const circulant_lane *l,
                                     float2 *spectra) {
    switch (l->log2_k) {
    case 2:
        circulant_sum<2, na, nb, teams, is_packed>(from, terms, l, spectra);
        break;
    case 3:
        circulant_sum<3, na, nb, teams, is_packed>(from, terms, l, spectra);
        break;
    case 4:
        circulant_sum<4, na, nb, teams, is_packed>(from, terms, l, spectra);
        break;
    case 5:
        circulant_sum<5, na, nb, teams, is_packed>(from, terms, l, spectra);
        break;
    case 6:
        circulant_sum<6, na, nb, teams, is_packed>(from, terms, l, spectra);
        break;
    default:
        circulant_sum<7, na, nb, teams, is_packed>(from, terms, l, spectra);
        break;
    }
    if (l->k < CIRCULANT_CHUNK)
        circulant_fold<na * nb, teams>(l, spectra);
}

#endif
