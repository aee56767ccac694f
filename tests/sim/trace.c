/* Chrome trace (chrome://tracing, Perfetto) and SVG heat map of CPU x time. */
#include "tests/sim/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/internal.h"

#define TRACE_MAX_SEGMENTS (1u << 20)
#define MAP_COLUMNS 200u
#define MAP_LEFT 60u
#define MAP_TOP 44u
#define MAP_CELL_WIDTH 5u

enum segment_kind { SEG_RUN, SEG_PREEMPTED, SEG_BLOCKED, SEG_WAKE };

struct segment {
    uint16_t cpu;
    uint8_t kind;    /* how a run ended: SEG_RUN is an interrupt, after which it goes on */
    uint32_t thread;
    uint64_t from, to;
};

struct sim_trace {
    struct segment *segments;
    size_t count, size;
    uint64_t since;
    bool full;
};

struct sim_trace *trace_new(struct sim *s)
{
    struct sim_trace *trace = calloc(1, sizeof(*trace));

    if (trace != NULL) {
        trace->since = s->now;
    }
    return trace;
}

void trace_free(struct sim_trace *trace)
{
    if (trace != NULL) {
        free(trace->segments);
        free(trace);
    }
}

static void segment_add(struct sim_trace *trace, struct segment seg)
{
    if (trace->count == trace->size) {
        size_t size = trace->size == 0 ? 4096 : trace->size * 2;
        struct segment *more = size > TRACE_MAX_SEGMENTS ? NULL : realloc(trace->segments, size * sizeof(*more));

        if (more == NULL) {
            trace->full = true;
            return;
        }
        trace->segments = more;
        trace->size = size;
    }
    trace->segments[trace->count++] = seg;
}

void trace_segment(struct sim *s, uint32_t cpu, const struct sim_thread *t, uint64_t from, uint64_t to)
{
    struct sim_trace *trace = s->trace;
    struct segment *last = trace->count != 0 ? &trace->segments[trace->count - 1] : NULL;

    if (last != NULL && last->kind == SEG_RUN && last->cpu == cpu && last->thread == t->id && last->to == from) {
        last->to = to;
        return;
    }
    segment_add(trace, (struct segment){.cpu = (uint16_t)cpu, .thread = t->id, .from = from, .to = to});
}

void trace_end(struct sim *s, uint32_t cpu, const struct sim_thread *t, bool runnable)
{
    struct sim_trace *trace = s->trace;

    for (size_t back = 0; back < trace->count && back < 4ull * s->n; back++) {
        struct segment *seg = &trace->segments[trace->count - 1 - back];

        if (seg->thread == t->id && seg->kind == SEG_RUN && seg->cpu == cpu) {
            seg->kind = runnable ? SEG_PREEMPTED : SEG_BLOCKED;
            return;
        }
    }
}

void trace_wake(struct sim *s, uint32_t cpu, const struct sim_thread *t)
{
    segment_add(s->trace, (struct segment){.cpu = (uint16_t)cpu, .kind = SEG_WAKE, .thread = t->id, .from = s->now, .to = s->now});
}

static int finish(FILE *f)
{
    bool bad = ferror(f) != 0;

    return fclose(f) != 0 || bad ? -EIO : 0;
}

int trace_write_chrome(const struct sim *s, const char *path)
{
    const struct sim_trace *trace = s->trace;
    FILE *f = fopen(path, "w");

    if (f == NULL) {
        return -errno;
    }
    fprintf(f, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"seed\":\"%llu\",\"complete\":%s},\"traceEvents\":[\n",
            (unsigned long long)s->cfg.seed, trace->full ? "false" : "true");
    for (uint32_t c = 0; c < s->n; c++) {
        fprintf(f, "{\"ph\":\"M\",\"pid\":0,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":\"CPU %u\"}},\n", c, c);
    }
    for (size_t i = 0; i < trace->count; i++) {
        const struct segment *seg = &trace->segments[i];
        const struct sim_thread *t = s->threads[seg->thread - 1];

        if (seg->kind == SEG_WAKE) {
            fprintf(f, "{\"ph\":\"i\",\"s\":\"t\",\"pid\":0,\"tid\":%u,\"ts\":%.3f,\"name\":\"wake\",\"args\":{\"thread\":%u}},\n",
                    seg->cpu, (double)seg->from / 1000.0, t->id);
            continue;
        }
        fprintf(f, "{\"ph\":\"X\",\"pid\":0,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"name\":\"%s\",\"args\":{\"thread\":%u,"
                   "\"end\":\"%s\"}},\n",
                seg->cpu, (double)seg->from / 1000.0, (double)(seg->to - seg->from) / 1000.0, t->name, t->id,
                seg->kind == SEG_BLOCKED ? "blocked" : seg->kind == SEG_PREEMPTED ? "preempted" : "interrupted");
    }
    fprintf(f, "{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"weir-sim\"}}\n]}\n");
    return finish(f);
}

/* Adds the share of [from, to) that falls into each column. */
static void spread(float *row, uint64_t since, double column_ns, uint64_t from, uint64_t to)
{
    double a = ((double)from - (double)since) / column_ns;
    double b = ((double)to - (double)since) / column_ns;

    a = a < 0 ? 0 : a;
    b = b > MAP_COLUMNS ? MAP_COLUMNS : b;
    for (uint32_t col = (uint32_t)a; col < MAP_COLUMNS && (double)col < b; col++) {
        double lo = a > col ? a : col;
        double hi = b < col + 1.0 ? b : col + 1.0;

        row[col] += hi > lo ? (float)(hi - lo) : 0.0f;
    }
}

static void cell(FILE *f, uint32_t x, uint32_t y, uint32_t h, float busy)
{
    uint32_t shade = 255u - (uint32_t)(busy > 1.0f ? 255.0f : busy * 255.0f);

    if (shade < 255u) {
        fprintf(f, "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"#%02x%02x%02x\"/>\n", x, y, MAP_CELL_WIDTH, h,
                shade / 2 + 20, 80 + shade * 170 / 255, 255 - (255 - shade) / 3);
    }
}

int trace_write_svg(const struct sim *s, const char *path, const char *title)
{
    const struct sim_trace *trace = s->trace;
    uint32_t height = s->n <= 64 ? 12 : s->n <= 256 ? 4 : 2;
    double column_ns = (double)(s->now - trace->since) / MAP_COLUMNS;
    uint32_t width = MAP_LEFT + MAP_COLUMNS * MAP_CELL_WIDTH + 20;
    float *busy = calloc((size_t)s->n * MAP_COLUMNS, sizeof(*busy));
    FILE *f = fopen(path, "w");

    if (f == NULL || busy == NULL || column_ns <= 0.0) {
        int error = f == NULL ? -errno : -ENOMEM;

        if (f != NULL) {
            fclose(f);
        }
        free(busy);
        return error;
    }
    for (size_t i = 0; i < trace->count; i++) {
        const struct segment *seg = &trace->segments[i];

        if (seg->kind == SEG_WAKE) {
            continue;
        }
        spread(&busy[(size_t)seg->cpu * MAP_COLUMNS], trace->since, column_ns, seg->from, seg->to);
    }
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" font-family=\"sans-serif\" "
            "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"%u\" y=\"16\" "
            "font-size=\"14\">%s</text>\n<text x=\"%u\" y=\"32\">CPU down, time across: %.3f ms, a column is %.1f us; "
            "dark is busy%s</text>\n",
            width, MAP_TOP + s->n * height + 24, MAP_LEFT, title, MAP_LEFT, (double)(s->now - trace->since) / 1e6,
            column_ns / 1e3, trace->full ? "; cut short at the trace limit" : "");
    for (uint32_t c = 0; c < s->n; c++) {
        uint32_t y = MAP_TOP + c * height;

        if (c % (s->n <= 64 ? 4 : 64) == 0) {
            fprintf(f, "<text x=\"%u\" y=\"%u\" text-anchor=\"end\">CPU %u</text>\n", MAP_LEFT - 6, y + 10, c);
        }
        for (uint32_t col = 0; col < MAP_COLUMNS; col++) {
            cell(f, MAP_LEFT + col * MAP_CELL_WIDTH, y, height - (height > 2), busy[(size_t)c * MAP_COLUMNS + col]);
        }
    }
    fprintf(f, "</svg>\n");
    free(busy);
    return finish(f);
}
