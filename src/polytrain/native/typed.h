/* The routines for one type of numbers T, see kernels.c. */

#define NAME(name) PASTE(name, TYPE, LEVEL)
#define LANES (VECTOR_BYTES / sizeof(T))
#define vec NAME(vec)
#define load(place) (*(const vec *)(place))
#define store(place, value) (*(vec *)(place) = (value))

typedef T vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));

/* Rows of a strip for spreads of so many lines: as many as stay in cache, but enough to pay for the sums' traffic. */
static inline size_t NAME(strip_rows)(size_t lines)
{
    const size_t unit = TILE_ROWS * LANES;
    size_t rows = STRIP_BYTES / (lines * sizeof(T)) / unit * unit;
    if (rows < 2 * unit) rows = 2 * unit;
    return rows > 8 * unit ? 8 * unit : rows;
}

/* Copy `count` rows of `lines` lines into a strip, and fill up with zeros. */
static void NAME(fill)(size_t lines, size_t all_lines, size_t count, size_t rows, const T *from, size_t stride, T *strip)
{
    for (size_t line = 0; line < lines; line++) {
        memcpy(strip + line * rows, from + line * stride, count * sizeof(T));
        if (count < rows) memset(strip + line * rows + count, 0, (rows - count) * sizeof(T));
    }
    memset(strip + lines * rows, 0, (all_lines - lines) * rows * sizeof(T));
}

/* Near environment (near lines) times function values (n lines, the first of them 1): all lines of the spread but the
   first `near`, which are the environment itself; filled up with zeros to `all_lines`. */
static void NAME(spread)(size_t near, size_t n, size_t all_lines, size_t count, size_t rows, const T *side,
                         size_t side_stride, const T *values, size_t values_stride, T *strip)
{
    for (size_t i = 1; i < n; i++) {
        const T *function = values + i * values_stride;
        for (size_t a = 0; a < near; a++) {
            const T *one = side + a * side_stride;
            T *product = strip + (i * near + a) * rows;
            size_t j = 0;
            for (; j + LANES <= count; j += LANES) store(product + j, load(one + j) * load(function + j));
            for (; j < count; j++) product[j] = one[j] * function[j];
            for (; j < rows; j++) product[j] = 0;
        }
    }
    memset(strip + n * near * rows, 0, (all_lines - n * near) * rows * sizeof(T));
}

/* Lines of a spread: the near environment where it is, then all products of it. */
typedef struct {
    const T *side, *strip;
    size_t near, lines, side_stride, rows;
} NAME(lines);

static inline const T *NAME(line)(const NAME(lines) *spread, size_t k)
{
    return k < spread->near ? spread->side + k * spread->side_stride : spread->strip + k * spread->rows;
}

/* Images of a few rows: `sums[t][x]` = sum over k of matrix[k][t] * line k of the spread[x-th vector from j on]. */
#define ADD_IMAGES(begin, end, base, stride)                                                                           \
    for (size_t k = begin; k < end; k++) {                                                                             \
        const T *entries = matrix + b + k * far, *place = (base) + k * (stride) + j;                                   \
        vec near_values[TILE_ROWS];                                                                                    \
        _Pragma("GCC unroll 4") for (size_t x = 0; x < TILE_ROWS; x++) near_values[x] = load(place + x * LANES);       \
        _Pragma("GCC unroll 4") for (size_t t = 0; t < TILE_B; t++)                                                    \
            _Pragma("GCC unroll 4") for (size_t x = 0; x < TILE_ROWS; x++) sums[t][x] += near_values[x] * entries[t];  \
    }
#define IMAGES                                                                                                         \
    vec sums[TILE_B][TILE_ROWS];                                                                                       \
    for (size_t t = 0; t < TILE_B; t++)                                                                                \
        for (size_t x = 0; x < TILE_ROWS; x++) sums[t][x] = (vec){0};                                                  \
    ADD_IMAGES(0, spread->near, spread->side, spread->side_stride)                                                     \
    ADD_IMAGES(spread->near, spread->lines, spread->strip, spread->rows)

/* Scores of a strip: far environment times images of the spread, summed. The matrix is (lines, far); of the far
   environment `real` lines are there. */
static void NAME(scores)(const NAME(lines) *spread, size_t far, size_t real, const T *matrix, const T *far_side,
                         size_t far_stride, T *scores)
{
    memset(scores, 0, spread->rows * sizeof(T));
    for (size_t b = 0; b < far; b += TILE_B)
        for (size_t j = 0; j < spread->rows; j += TILE_ROWS * LANES) {
            IMAGES
            for (size_t x = 0; x < TILE_ROWS; x++) {
                vec total = load(scores + j + x * LANES);
                for (size_t t = 0; t < TILE_B; t++)
                    if (b + t < real) total += sums[t][x] * load(far_side + (b + t) * far_stride + j + x * LANES);
                store(scores + j + x * LANES, total);
            }
        }
}

/* Images of a strip, (far, rows), of which `real` lines are written. */
static void NAME(images)(const NAME(lines) *spread, size_t far, size_t real, const T *matrix, T *images, size_t stride)
{
    for (size_t b = 0; b < far; b += TILE_B)
        for (size_t j = 0; j < spread->rows; j += TILE_ROWS * LANES) {
            IMAGES
            for (size_t t = 0; t < TILE_B; t++)
                for (size_t x = 0; x < TILE_ROWS; x++)
                    if (b + t < real) store(images + (b + t) * stride + j + x * LANES, sums[t][x]);
        }
}

/* Add the outer products of the lines of a spread and of a strip, row by row, to sums that keep a vector per entry. */
static void NAME(add_outer)(const NAME(lines) *spread, size_t all_lines, size_t far, const T *weighted, vec *sums)
{
    const size_t rows = spread->rows;
    for (size_t k = 0; k < all_lines; k += TILE_K) {
        const T *own[TILE_K];
        for (size_t s = 0; s < TILE_K; s++) own[s] = NAME(line)(spread, k + s);
        for (size_t b = 0; b < far; b += TILE_B) {
            vec tile[TILE_K][TILE_B];
            _Pragma("GCC unroll 4") for (size_t s = 0; s < TILE_K; s++)
                _Pragma("GCC unroll 4") for (size_t t = 0; t < TILE_B; t++) tile[s][t] = sums[s * TILE_B + t];
            for (size_t j = 0; j < rows; j += LANES) {
                vec one[TILE_K];
                _Pragma("GCC unroll 4") for (size_t s = 0; s < TILE_K; s++) one[s] = load(own[s] + j);
                _Pragma("GCC unroll 4") for (size_t t = 0; t < TILE_B; t++) {
                    const vec other = load(weighted + (b + t) * rows + j);
                    _Pragma("GCC unroll 4") for (size_t s = 0; s < TILE_K; s++) tile[s][t] += one[s] * other;
                }
            }
            _Pragma("GCC unroll 4") for (size_t s = 0; s < TILE_K; s++)
                _Pragma("GCC unroll 4") for (size_t t = 0; t < TILE_B; t++) sums[s * TILE_B + t] = tile[s][t];
            sums += TILE_K * TILE_B;
        }
    }
}

/* Sum the lanes of what `add_outer` has added up, to `sums` (lines, far). */
static void NAME(sum_tiles)(size_t lines, size_t far, size_t width, const vec *tiles, double *sums)
{
    for (size_t k = 0; k < lines; k++)
        for (size_t b = 0; b < far; b++) {
            const size_t tile = k / TILE_K * (width / TILE_B) + b / TILE_B;
            const vec value = tiles[(tile * TILE_K + k % TILE_K) * TILE_B + b % TILE_B];
            double total = 0;
            for (size_t lane = 0; lane < LANES; lane++) total += value[lane];
            sums[k * far + b] = total;
        }
}

/* A core (lines, far) with rows that are filled up to `width`. */
static void NAME(pack)(size_t lines, size_t far, size_t width, const T *matrix, T *packed)
{
    for (size_t k = 0; k < lines; k++) {
        memcpy(packed + k * width, matrix + k * far, far * sizeof(T));
        memset(packed + k * width + far, 0, (width - far) * sizeof(T));
    }
}

/* What `product`, `forward` and `gradient` of a block need, all in one pass over the rows.

   With `matrix` (n * near, far), the scores of it go to `scores`. With `sums` (n * near, far), they are
   sum over rows of spread x far environment x factors, where the factors are `factors` times the scores, if there is a
   matrix, or `factors` alone. */
EXPORT int NAME(dense_product)(int64_t n_rows, int64_t near_, int64_t n_, int64_t far_, const T *side,
                               int64_t side_stride, const T *values, int64_t values_stride, const T *far_side,
                               int64_t far_stride, const T *matrix, const T *factors, T *scores, double *sums)
{
    const size_t near = near_, n = n_, far = far_, lines = n * near;
    const size_t all_lines = up_to(lines, TILE_K), width = up_to(far, TILE_B);
    const size_t most = NAME(strip_rows)(all_lines + width), unit = TILE_ROWS * LANES;
    const size_t n_tiles = all_lines * width * LANES;
    void *memory;
    T *strip = scratch(((all_lines + near + 2 * width + 1) * most + lines * width + n_tiles) * sizeof(T), &memory);
    if (!strip) return -1;
    T *weighted = strip + all_lines * most, *found = weighted + width * most, *kept = found + most;
    T *packed = kept + n_tiles, *near_strip = packed + lines * width, *far_strip = near_strip + near * most;
    vec *tiles = (vec *)kept;
    if (sums) memset(tiles, 0, n_tiles * sizeof(T));
    if (matrix) NAME(pack)(lines, far, width, matrix, packed);
    for (size_t first = 0; first < (size_t)n_rows; first += most) {
        const size_t count = (size_t)n_rows - first < most ? (size_t)n_rows - first : most, rows = up_to(count, unit);
        NAME(lines) spread = {side + first, strip, near, lines, side_stride, rows};
        const T *opposite = far_side + first;
        size_t opposite_stride = far_stride;
        NAME(spread)(near, n, all_lines, count, rows, spread.side, side_stride, values + first, values_stride, strip);
        if (count < rows) { /* rows that are not there must not be read */
            NAME(fill)(near, near, count, rows, spread.side, side_stride, near_strip);
            NAME(fill)(far, far, count, rows, opposite, far_stride, far_strip);
            spread.side = near_strip, spread.side_stride = opposite_stride = rows, opposite = far_strip;
        }
        if (matrix) {
            NAME(scores)(&spread, width, far, packed, opposite, opposite_stride, found);
            memcpy(scores + first, found, count * sizeof(T));
        }
        if (!sums) continue;
        if (matrix)
            for (size_t j = 0; j < count; j++) found[j] *= factors[first + j];
        else
            memcpy(found, factors + first, count * sizeof(T));
        memset(found + count, 0, (rows - count) * sizeof(T));
        for (size_t b = 0; b < far; b++)
            for (size_t j = 0; j < rows; j += LANES)
                store(weighted + b * rows + j, load(opposite + b * opposite_stride + j) * load(found + j));
        memset(weighted + far * rows, 0, (width - far) * rows * sizeof(T));
        NAME(add_outer)(&spread, all_lines, width, weighted, tiles);
    }
    if (sums) NAME(sum_tiles)(lines, far, width, tiles, sums);
    free(memory);
    return 0;
}

/* Near environment contracted with a core, `matrix` (n * near, far), to `out` (far, N). */
EXPORT int NAME(dense_move)(int64_t n_rows, int64_t near_, int64_t n_, int64_t far_, const T *side,
                            int64_t side_stride, const T *values, int64_t values_stride, const T *matrix, T *out,
                            int64_t out_stride)
{
    const size_t near = near_, n = n_, far = far_, lines = n * near, width = up_to(far, TILE_B);
    const size_t most = NAME(strip_rows)(lines + width), unit = TILE_ROWS * LANES;
    void *memory;
    T *strip = scratch(((lines + near + far) * most + lines * width) * sizeof(T), &memory);
    if (!strip) return -1;
    T *near_strip = strip + lines * most, *found = near_strip + near * most, *packed = found + far * most;
    NAME(pack)(lines, far, width, matrix, packed);
    for (size_t first = 0; first < (size_t)n_rows; first += most) {
        const size_t count = (size_t)n_rows - first < most ? (size_t)n_rows - first : most, rows = up_to(count, unit);
        NAME(lines) spread = {side + first, strip, near, lines, side_stride, rows};
        NAME(spread)(near, n, lines, count, rows, spread.side, side_stride, values + first, values_stride, strip);
        if (count == rows) {
            NAME(images)(&spread, width, far, packed, out + first, out_stride);
            continue;
        }
        NAME(fill)(near, near, count, rows, spread.side, side_stride, near_strip);
        spread.side = near_strip, spread.side_stride = rows;
        NAME(images)(&spread, width, far, packed, found, rows);
        for (size_t b = 0; b < far; b++)
            memcpy(out + b * out_stride + first, found + b * rows, count * sizeof(T));
    }
    free(memory);
    return 0;
}

/* Products of all pairs of lines, a <= a', times `factors` if there are any: (lines (lines + 1) / 2, rows). */
static void NAME(pairs)(size_t lines, size_t count, size_t rows, const T *side, size_t stride, const T *factors, T *strip)
{
    for (size_t a = 0; a < lines; a++)
        for (size_t other = a; other < lines; other++, strip += rows) {
            const T *one = side + a * stride, *two = side + other * stride;
            size_t j = 0;
            for (; j + LANES <= count; j += LANES) {
                vec product = load(one + j) * load(two + j);
                if (factors) product *= load(factors + j);
                store(strip + j, product);
            }
            for (; j < count; j++) strip[j] = one[j] * two[j] * (factors ? factors[j] : 1);
            for (; j < rows; j++) strip[j] = 0;
        }
}

/* Sums over rows of weights x pairs of near channels x functions of the product rule x pairs of far channels, to `sums`
   (n, near pairs, far pairs): the whole of a Gram matrix. The first function is 1. */
EXPORT int NAME(dense_moments)(int64_t n_rows, int64_t near, int64_t n_, int64_t far, const T *side, int64_t side_stride,
                               const T *functions, int64_t functions_stride, const T *far_side, int64_t far_stride,
                               const T *weights, double *sums)
{
    const size_t n = n_, own = near * (near + 1) / 2, other = far * (far + 1) / 2, lines = n * own;
    const size_t all_lines = up_to(lines, TILE_K), width = up_to(other, TILE_B), n_tiles = all_lines * width * LANES;
    const size_t most = NAME(strip_rows)(all_lines + width), unit = TILE_ROWS * LANES;
    void *memory;
    T *strip = scratch(((all_lines + width) * most + n_tiles) * sizeof(T), &memory);
    if (!strip) return -1;
    T *weighted = strip + all_lines * most;
    vec *tiles = (vec *)(weighted + width * most);
    memset(tiles, 0, n_tiles * sizeof(T));
    for (size_t first = 0; first < (size_t)n_rows; first += most) {
        const size_t count = (size_t)n_rows - first < most ? (size_t)n_rows - first : most, rows = up_to(count, unit);
        const NAME(lines) spread = {strip, strip, 0, lines, rows, rows};
        NAME(pairs)(near, count, rows, side + first, side_stride, NULL, strip);
        NAME(spread)(own, n, all_lines, count, rows, strip, rows, functions + first, functions_stride, strip);
        NAME(pairs)(far, count, rows, far_side + first, far_stride, weights + first, weighted);
        memset(weighted + other * rows, 0, (width - other) * rows * sizeof(T));
        NAME(add_outer)(&spread, all_lines, width, weighted, tiles);
    }
    NAME(sum_tiles)(lines, other, width, tiles, sums);
    free(memory);
    return 0;
}

#undef IMAGES
#undef ADD_IMAGES

/* --- functions in a table over knots: each row meets two of its lines ----------------------------------------------- */

/* Rows are taken in pieces, and those of a piece are sorted by the knot that they follow: then a table entry serves a
   run of rows while it is in a register. In a piece, rows are the FIRST axis, so that channels fill vectors. */

#define INLINE static inline __attribute__((always_inline))
#define EACH(v, count) _Pragma("GCC unroll 8") for (size_t v = 0; v < (count); v++)

/* Exchange lines and rows of a square of numbers. */
INLINE void NAME(turn_square)(vec *square)
{
#if defined(__clang__) || __GNUC__ >= 12
#define EXCHANGE(step, keep, take)                                                                                     \
    EACH(i, LANES) if (!(i & step)) {                                                                                  \
        const vec one = square[i], other = square[i + step];                                                           \
        square[i] = __builtin_shufflevector(one, other, keep);                                                         \
        square[i + step] = __builtin_shufflevector(one, other, take);                                                  \
    }
#define LIST(...) __VA_ARGS__
#if IS_FLOAT
    EXCHANGE(4, LIST(0, 1, 2, 3, 8, 9, 10, 11), LIST(4, 5, 6, 7, 12, 13, 14, 15))
    EXCHANGE(2, LIST(0, 1, 8, 9, 4, 5, 12, 13), LIST(2, 3, 10, 11, 6, 7, 14, 15))
    EXCHANGE(1, LIST(0, 8, 2, 10, 4, 12, 6, 14), LIST(1, 9, 3, 11, 5, 13, 7, 15))
#else
    EXCHANGE(2, LIST(0, 1, 4, 5), LIST(2, 3, 6, 7))
    EXCHANGE(1, LIST(0, 4, 2, 6), LIST(1, 5, 3, 7))
#endif
#undef EXCHANGE
#undef LIST
#else
    for (size_t i = 0; i < LANES; i++)
        for (size_t j = 0; j < i; j++) {
            const T one = square[i][j];
            square[i][j] = square[j][i];
            square[j][i] = one;
        }
#endif
}

/* Lines (lines, count) -> rows (count, width) at their places, filled up with zeros; width is a multiple of LANES. */
static void NAME(to_rows)(size_t lines, size_t width, size_t count, const T *from, size_t stride, const uint32_t *places,
                          T *rows)
{
    for (size_t a = 0; a < width; a += LANES) {
        const size_t n_lines = lines - a < LANES ? lines - a : LANES;
        size_t j = 0;
        for (; j + LANES <= count; j += LANES) {
            vec square[LANES];
            for (size_t i = 0; i < LANES; i++) square[i] = i < n_lines ? load(from + (a + i) * stride + j) : (vec){0};
            NAME(turn_square)(square);
            EACH(i, LANES) store(rows + places[j + i] * width + a, square[i]);
        }
        for (; j < count; j++)
            for (size_t i = 0; i < LANES; i++)
                rows[places[j] * width + a + i] = i < n_lines ? from[(a + i) * stride + j] : 0;
    }
}

/* The way back. */
static void NAME(to_lines)(size_t lines, size_t width, size_t count, const T *rows, const uint32_t *places, T *to,
                           size_t stride)
{
    for (size_t a = 0; a < width; a += LANES) {
        const size_t n_lines = lines - a < LANES ? lines - a : LANES;
        size_t j = 0;
        for (; j + LANES <= count; j += LANES) {
            vec square[LANES];
            EACH(i, LANES) square[i] = load(rows + places[j + i] * width + a);
            NAME(turn_square)(square);
            for (size_t i = 0; i < n_lines; i++) store(to + (a + i) * stride + j, square[i]);
        }
        for (; j < count; j++)
            for (size_t i = 0; i < n_lines; i++) to[(a + i) * stride + j] = rows[places[j] * width + a + i];
    }
}

/* Images of a few rows between the same two knots, of some vectors of far channels. `low` is the table at the knot
   before them, (near, width), and the one at the knot after them follows. `own` are the near channels, `part` says how
   far each row is from the one knot to the other. */
INLINE void NAME(local_images)(size_t n_own, size_t parts, size_t near, size_t near_width, size_t width, const T *low,
                               const T *own, const T *part, vec images[][4])
{
    const T *high = low + near * width;
    vec there[4][4];
    EACH(s, n_own) EACH(v, parts) images[s][v] = there[s][v] = (vec){0};
    for (size_t a = 0; a < near; a++) {
        vec before[4], after[4];
        EACH(v, parts) before[v] = load(low + a * width + v * LANES), after[v] = load(high + a * width + v * LANES);
        EACH(s, n_own) EACH(v, parts) {
            images[s][v] += before[v] * own[s * near_width + a];
            there[s][v] += after[v] * own[s * near_width + a];
        }
    }
    EACH(s, n_own) EACH(v, parts) images[s][v] += (there[s][v] - images[s][v]) * part[s];
}

/* How many vectors of channels, and rows, are worked on at once. */
#define LOCAL_PARTS (LEVEL >= 4 ? 2 : 1)
#define LOCAL_ROWS 4

/* Scores of a few rows: images times far channels, with the lanes still to be summed. */
INLINE void NAME(local_scores)(size_t n_own, size_t near, size_t near_width, size_t width, const T *low, const T *own,
                               const T *far_rows, const T *part, vec *scores)
{
    vec totals[4], images[4][4];
    size_t at = 0;
    EACH(s, n_own) totals[s] = (vec){0};
#define SCORES(parts)                                                                                                  \
    NAME(local_images)(n_own, parts, near, near_width, width, low + at, own, part, images);                            \
    EACH(s, n_own) EACH(v, parts) totals[s] += images[s][v] * load(far_rows + s * width + at + v * LANES)
    for (; at + LOCAL_PARTS * LANES <= width; at += LOCAL_PARTS * LANES) { SCORES(LOCAL_PARTS); }
    for (; at < width; at += LANES) { SCORES(1); }
#undef SCORES
    EACH(s, n_own) scores[s] = totals[s];
}

/* Sum the lanes of `count` vectors; there is room for a multiple of LANES of them. */
static void NAME(sum_lanes)(size_t count, vec *values, T *sums)
{
    for (size_t s = 0; s < count; s += LANES) {
        vec square[LANES], total;
        EACH(i, LANES) square[i] = values[s + i];
        NAME(turn_square)(square);
        total = square[0];
        EACH(i, LANES) if (i) total += square[i];
        store(sums + s, total);
    }
}

/* Images of a few rows, written as rows. */
INLINE void NAME(local_moves)(size_t n_own, size_t near, size_t near_width, size_t width, const T *low, const T *own,
                              const T *part, T *rows)
{
    vec images[4][4];
    size_t at = 0;
#define MOVES(parts)                                                                                                   \
    NAME(local_images)(n_own, parts, near, near_width, width, low + at, own, part, images);                            \
    EACH(s, n_own) EACH(v, parts) store(rows + s * width + at + v * LANES, images[s][v])
    for (; at + LOCAL_PARTS * LANES <= width; at += LOCAL_PARTS * LANES) { MOVES(LOCAL_PARTS); }
    for (; at < width; at += LANES) { MOVES(1); }
#undef MOVES
}

/* Add outer products of near and far channels of a run of rows, times their factors, to the totals of both knots. */
INLINE void NAME(local_outer)(size_t channels, size_t n_run, size_t near, size_t near_width, size_t width, T *low,
                              const T *own, const T *far_rows, const T *part, const T *factors)
{
    T *high = low + near * width;
    for (size_t at = 0; at < width; at += LANES) {
        vec here[8], there[8];
        EACH(a, channels) here[a] = load(low + a * width + at), there[a] = load(high + a * width + at);
        for (size_t s = 0; s < n_run; s++) {
            const vec weighted = load(far_rows + s * width + at) * factors[s], after = weighted * part[s];
            const vec before = weighted - after;
            const T *channel = own + s * near_width;
            EACH(a, channels) here[a] += before * channel[a], there[a] += after * channel[a];
        }
        EACH(a, channels) store(low + a * width + at, here[a]), store(high + a * width + at, there[a]);
    }
}

/* Rows of a piece: as many as stay in the second-level cache, and never so few that no two share a knot. */
static inline size_t NAME(piece_rows)(size_t channels, size_t n_rows)
{
    size_t rows = 262144 / (channels * sizeof(T)) / 64 * 64;
    rows = rows < 512 ? 512 : rows > 4096 ? 4096 : rows;
    return rows < n_rows ? rows : n_rows;
}

/* A piece of rows, sorted by knots. */
typedef struct {
    size_t near, far, near_width, width, knots, most;
    uint32_t *knot, *places, *ends;
    T *near_rows, *far_rows, *part, *found;
    vec *open_sums;
    void *memory;
} NAME(piece);
#define piece NAME(piece)

static int NAME(open_piece)(piece *p, size_t n_rows, size_t near, size_t far, size_t knots)
{
    p->near = near, p->far = far, p->knots = knots;
    p->near_width = up_to(near, LANES), p->width = up_to(far, LANES);
    p->most = NAME(piece_rows)(p->near_width + p->width, n_rows);
    const size_t most = up_to(p->most, 16);
    p->near_rows = scratch(most * (p->near_width + p->width + 2 + LANES) * sizeof(T)
                               + (2 * most + knots + 1) * sizeof(uint32_t), &p->memory);
    if (!p->near_rows) return -1;
    p->far_rows = p->near_rows + most * p->near_width;
    p->part = p->far_rows + most * p->width;
    p->found = p->part + most;
    p->open_sums = (vec *)(p->found + most);
    p->places = (uint32_t *)(p->open_sums + most);
    p->knot = p->places + most;
    p->ends = p->knot + most;
    return 0;
}

/* Sort rows at `x` by their knot: the place of each, where the run of each knot ends, and how far along each row is. */
static void NAME(sort)(piece *p, size_t count, const T *x)
{
    memset(p->ends, 0, (p->knots + 1) * sizeof(uint32_t));
    const T last = (T)(int32_t)p->knots - 1;
    for (size_t j = 0; j < count; j++) {
        T at = x[j];
        at = at > -1 ? at : last; /* whatever x holds, NaN included, no place beyond the tables is touched */
        p->knot[j] = (uint32_t)(int32_t)(at < last ? at : last);
    }
    for (size_t j = 0; j < count; j++) p->ends[p->knot[j] + 1]++;
    for (size_t k = 0; k < p->knots; k++) p->ends[k + 1] += p->ends[k];
    /* ends[k] is where the run of k begins; placing its rows moves it to where it ends. */
    for (size_t j = 0; j < count; j++) {
        const uint32_t place = p->ends[p->knot[j]]++;
        p->places[j] = place;
        p->part[place] = x[j] - (T)(int32_t)p->knot[j];
    }
}

#define EACH_RUN(knot, begin, end)                                                                                     \
    for (size_t knot = 0, begin = 0, end; knot < p.knots; begin = end, knot++)                                         \
        if ((end = p.ends[knot]) > begin)

/* `dense_product` for functions in a table over `knots` knots, of which each row meets two: `x` are positions among
   them, `tables` is the core contracted with the functions at every knot, (knots + 1, near, width), where `width` is
   `far` rounded up to a multiple of LANES. `totals`, of the same shape, is added to. No row lies beyond the last knot
   but one of the table. */
EXPORT int NAME(local_product)(int64_t n_rows, int64_t near, int64_t far, int64_t knots, const T *x, const T *side,
                               int64_t side_stride, const T *far_side, int64_t far_stride, const T *tables,
                               const T *factors, T *scores, T *totals)
{
    piece p;
    if (NAME(open_piece)(&p, n_rows, near, far, knots)) return -1;
    const size_t size = p.near * p.width;
    for (size_t first = 0; first < (size_t)n_rows; first += p.most) {
        const size_t count = (size_t)n_rows - first < p.most ? (size_t)n_rows - first : p.most;
        NAME(sort)(&p, count, x + first);
        NAME(to_rows)(p.near, p.near_width, count, side + first, side_stride, p.places, p.near_rows);
        NAME(to_rows)(p.far, p.width, count, far_side + first, far_stride, p.places, p.far_rows);
        if (tables) {
            EACH_RUN(knot, begin, end) {
                const T *low = tables + knot * size;
                size_t s = begin;
#define SCORES(n_own)                                                                                                  \
    NAME(local_scores)(n_own, p.near, p.near_width, p.width, low, p.near_rows + s * p.near_width,                      \
                       p.far_rows + s * p.width, p.part + s, p.open_sums + s)
                for (; s + LOCAL_ROWS <= end; s += LOCAL_ROWS) SCORES(LOCAL_ROWS);
                for (; s < end; s++) SCORES(1);
#undef SCORES
            }
            NAME(sum_lanes)(count, p.open_sums, p.found);
            for (size_t j = 0; j < count; j++) scores[first + j] = p.found[p.places[j]];
        }
        if (!totals) continue;
        for (size_t j = 0; j < count; j++)
            p.found[p.places[j]] = tables ? p.found[p.places[j]] * factors[first + j] : factors[first + j];
        EACH_RUN(knot, begin, end) {
            size_t a = 0;
#define OUTER(channels)                                                                                                \
    NAME(local_outer)(channels, end - begin, p.near, p.near_width, p.width, totals + knot * size + a * p.width,        \
                      p.near_rows + begin * p.near_width + a, p.far_rows + begin * p.width, p.part + begin,            \
                      p.found + begin)
            for (; a + TILE_OUTER <= p.near; a += TILE_OUTER) OUTER(TILE_OUTER);
            for (; a < p.near; a++) OUTER(1);
#undef OUTER
        }
    }
    free(p.memory);
    return 0;
}

/* `dense_move` for functions in a table, see `local_product`. */
EXPORT int NAME(local_move)(int64_t n_rows, int64_t near, int64_t far, int64_t knots, const T *x, const T *side,
                            int64_t side_stride, const T *tables, T *out, int64_t out_stride)
{
    piece p;
    if (NAME(open_piece)(&p, n_rows, near, far, knots)) return -1;
    for (size_t first = 0; first < (size_t)n_rows; first += p.most) {
        const size_t count = (size_t)n_rows - first < p.most ? (size_t)n_rows - first : p.most;
        NAME(sort)(&p, count, x + first);
        NAME(to_rows)(p.near, p.near_width, count, side + first, side_stride, p.places, p.near_rows);
        EACH_RUN(knot, begin, end) {
            const T *low = tables + knot * p.near * p.width;
            size_t s = begin;
#define MOVES(n_own)                                                                                                   \
    NAME(local_moves)(n_own, p.near, p.near_width, p.width, low, p.near_rows + s * p.near_width, p.part + s,           \
                      p.far_rows + s * p.width)
            for (; s + LOCAL_ROWS <= end; s += LOCAL_ROWS) MOVES(LOCAL_ROWS);
            for (; s < end; s++) MOVES(1);
#undef MOVES
        }
        NAME(to_lines)(p.far, p.width, count, p.far_rows, p.places, out + first, out_stride);
    }
    free(p.memory);
    return 0;
}

/* --- conjugate gradients --------------------------------------------------------------------------------------------- */

/* Rows with the values of all functions, or, where there are knots, with positions among these. */
typedef struct {
    int64_t n_rows, n_knots;
    shape size;
    const T *side, *values, *far_side, *knots, *curvature;
    int64_t side_stride, values_stride, far_stride;
    T *matrix, *totals;
} NAME(rows);

/* C' diag(curvature) C vec(step), and the scores of the step. */
static int NAME(multiply)(NAME(rows) *rows, const double *step, T *scores, double *image)
{
    const size_t n = rows->size.n, near = rows->size.near, far = rows->size.far, width = up_to(far, LANES);
    const size_t size = near * width, n_lines = rows->n_knots + 1;
    if (!rows->n_knots) {
        for (size_t k = 0; k < n_entries(rows->size); k++) rows->matrix[k] = (T)step[k];
        return NAME(dense_product)(rows->n_rows, near, n, far, rows->side, rows->side_stride, rows->values,
                                   rows->values_stride, rows->far_side, rows->far_stride, rows->matrix,
                                   rows->curvature, scores, image);
    }
    memset(rows->matrix, 0, n_lines * size * sizeof(T));
    memset(rows->totals, 0, n_lines * size * sizeof(T));
    for (size_t k = 0; k < n_lines; k++)
        for (size_t i = 0; i < n; i++) {
            const T factor = rows->knots[k * n + i];
            for (size_t a = 0; a < near; a++)
                for (size_t b = 0; b < far; b++)
                    rows->matrix[k * size + a * width + b] += factor * (T)step[(i * near + a) * far + b];
        }
    if (NAME(local_product)(rows->n_rows, near, far, rows->n_knots, rows->values, rows->side, rows->side_stride,
                            rows->far_side, rows->far_stride, rows->matrix, rows->curvature, scores, rows->totals))
        return -1;
    memset(image, 0, n_entries(rows->size) * sizeof(double));
    for (size_t k = 0; k < n_lines; k++)
        for (size_t i = 0; i < n; i++) {
            const double factor = rows->knots[k * n + i];
            for (size_t a = 0; a < near; a++)
                for (size_t b = 0; b < far; b++)
                    image[(i * near + a) * far + b] += factor * rows->totals[k * size + a * width + b];
        }
    return 0;
}

/* Solve (C' diag(curvature) C + alpha) step = -gradient loosely, from zero: see `_ConjugateGradients` in the module
   core_solvers, which does the same product by product. `ray` receives C vec(step). */
EXPORT int NAME(conjugate_gradients)(int64_t n_rows, int64_t near, int64_t n, int64_t far, int64_t n_knots,
                                     const T *side, int64_t side_stride, const T *values, int64_t values_stride,
                                     const T *far_side, int64_t far_stride, const T *knots, const T *curvature,
                                     const double *there, const double *back, const double *spectrum, double alpha,
                                     double tolerance, int64_t most, const double *gradient, double *step, double *ray)
{
    const shape s = {n, near, far};
    const size_t size = n_entries(s), local = (n_knots + 1) * near * up_to(far, LANES);
    const size_t numbers = n_knots ? 2 * local : size;
    void *memory;
    double *residual = scratch((2 * (size_t)most + 6) * size * sizeof(double) + (numbers + n_rows) * sizeof(T), &memory);
    if (!residual) return -1;
    double *conjugate = residual + size, *search = conjugate + size, *image = search + size, *spare = image + size;
    double *other = spare + size, *past = other + size;
    T *scores = (T *)(past + 2 * most * size), *matrix = scores + n_rows;
    NAME(rows) rows = {n_rows, n_knots, s, side, values, far_side, knots, curvature, side_stride, values_stride,
                       far_stride, matrix, n_knots ? matrix + local : NULL};
    double angles[64], gain = 0, total = 0;
    int failed = 0;
    memset(step, 0, size * sizeof(double));
    memset(ray, 0, n_rows * sizeof(double));
    for (size_t k = 0; k < size; k++) residual[k] = -gradient[k];
    precondition(s, there, back, spectrum, residual, spare, other, conjugate);
    memcpy(search, conjugate, size * sizeof(double));
    double angle = inner(size, residual, conjugate);
    for (int64_t round = 0; round < most && angle > 0; round++) {
        failed = NAME(multiply)(&rows, search, scores, image);
        if (failed) break;
        for (size_t k = 0; k < size; k++) image[k] += alpha * search[k];
        const double curved = inner(size, search, image);
        if (!(curved > 0)) break;
        const double length = angle / curved, before = gain;
        for (size_t k = 0; k < size; k++) step[k] += length * search[k];
        for (int64_t j = 0; j < n_rows; j++) ray[j] += length * scores[j];
        gain = 0.5 * length * angle;
        total += gain;
        const double ratio = before != 0 ? gain / before : 1;
        if ((ratio < 1 ? ratio : 1) * gain < tolerance * total) break;
        memcpy(past + 2 * round * size, residual, size * sizeof(double));
        memcpy(past + (2 * round + 1) * size, conjugate, size * sizeof(double));
        angles[round] = angle;
        for (size_t k = 0; k < size; k++) residual[k] -= length * image[k];
        for (int64_t old = 0; old <= round; old++) {
            const double *old_residual = past + 2 * old * size;
            const double part = inner(size, residual, old_residual + size) / angles[old];
            for (size_t k = 0; k < size; k++) residual[k] -= part * old_residual[k];
        }
        precondition(s, there, back, spectrum, residual, spare, other, conjugate);
        const double previous = angle;
        angle = inner(size, residual, conjugate);
        for (size_t k = 0; k < size; k++) search[k] = conjugate[k] + angle / previous * search[k];
    }
    free(memory);
    return failed;
}

/* --- whole trains ---------------------------------------------------------------------------------------------------- */

/* Values of all trains on some rows, to `out` (trains, N).

   Column k is seen through `values[k]`: of `dims[k]` functions, (dims[k], N) with the stride `strides[k]`; or, where
   `knots[k]` is not 0, positions among so many knots, (N,). Core k of train m has ranks `ranks[m][k]` and
   `ranks[m][k + 1]`, and `cores[m][k]` is what `dense_move` or `local_move` takes. */
EXPORT int NAME(evaluate)(int64_t n_rows, int64_t n_trains, int64_t n_columns, const int64_t *ranks, const int64_t *dims,
                          const int64_t *knots, const T *const *values, const int64_t *strides, const T *const *cores,
                          T *out)
{
    int64_t largest = 1, size = 1024; /* rows that stay in the first-level cache from column to column */
    for (int64_t k = 0; k < n_trains * (n_columns + 1); k++) largest = ranks[k] > largest ? ranks[k] : largest;
    for (int64_t k = 0; k < n_columns; k++)
        if (knots[k]) size = n_rows; /* rows that are sorted together */
    void *memory;
    T *side = scratch(2 * (size_t)(largest * size) * sizeof(T), &memory), *next = side + largest * size;
    if (!side) return -1;
    int failed = 0;
    for (int64_t first = 0; first < n_rows && !failed; first += size) {
        const int64_t count = n_rows - first < size ? n_rows - first : size;
        for (int64_t m = 0; m < n_trains && !failed; m++) {
            const int64_t *bonds = ranks + m * (n_columns + 1);
            for (int64_t j = 0; j < count; j++) side[j] = 1;
            for (int64_t k = 0; k < n_columns && !failed; k++) {
                const int is_last = k + 1 == n_columns;
                T *to = is_last ? out + m * n_rows + first : next;
                const T *core = cores[m * n_columns + k], *seen = values[k] + first;
                failed = knots[k] ? NAME(local_move)(count, bonds[k], bonds[k + 1], knots[k], seen, side, size, core,
                                                     to, is_last ? n_rows : size)
                                  : NAME(dense_move)(count, bonds[k], dims[k], bonds[k + 1], side, size, seen,
                                                     strides[k], core, to, is_last ? n_rows : size);
                T *swap = side;
                side = next, next = swap;
            }
        }
    }
    free(memory);
    return failed;
}

#undef piece
#undef EACH
#undef EACH_RUN
#undef INLINE
#undef LOCAL_PARTS
#undef LOCAL_ROWS
#undef NAME
#undef LANES
#undef vec
#undef load
#undef store
