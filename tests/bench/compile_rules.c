#include "bench/compile_rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct rules rules[] = {
    { "radv",
      { { "vgprs", "VGPRs" }, { "sgprs", "SGPRs" }, { "spilled vgprs", "Spilled VGPRs", true },
        { "spilled sgprs", "Spilled SGPRs" }, { "scratch", "Scratch size", true },
        { "lds", "LDS size" }, { "waves", "Subgroups per SIMD" },
        { "instructions", "Instructions" }, { "vector", "VALU" }, { "fma", NULL },
        { "cycles", "Inverse Throughput" } },
      .every = true, .loop = true, .matrix = 16,
      .legend = "vgprs, sgprs: registers; lds: bytes of a workgroup; scratch: bytes of a lane; "
                "waves: per SIMD; fma: share of the loop's vector instructions; cycles: the "
                "compiler's inverse throughput" },
    { "anv",
      { { "lanes", NULL }, { "live registers", "Max live registers" },
        { "spills", "Spill Count", true }, { "fills", "Fill Count", true },
        { "scratch", "Scratch Memory Size", true }, { "shared", "Workgroup Memory Size" },
        { "instructions", "Instruction Count" }, { "sends", "SEND Count" },
        { "loops", "Loop Count" }, { "cycles", "Cycle Count" } },
      .legend = "lanes: SIMD width; live registers: the most alive at a time; spills, fills: "
                "instructions; scratch, shared: bytes; sends: memory instructions; cycles: the "
                "compiler's estimate" },
    { "nvk",
      { { "registers", "Number of GPRs" }, { "warps", "Max warps/SM" },
        { "spills", "Spills to memory", true }, { "fills", "Fills from memory", true },
        { "scratch", "SLM size", true }, { "spills to registers", "Spills to reg" },
        { "instructions", "Instruction count" }, { "cycles", "Static cycle count" },
        { "code", "Code size" } },
      .legend = "registers: of a lane; warps: of a multiprocessor at a time; scratch, code: bytes; "
                "spills to registers: from uniform or predicate registers; cycles: the compiler's "
                "estimate" },
    { "honeykrisp",
      { { "registers", "GPRs" }, { "uniforms", "Uniforms" }, { "threads", "Threads" },
        { "spills", "Spills", true }, { "fills", "Fills", true }, { "scratch", "Scratch", true },
        { "instructions", "Instructions" }, { "alu", "ALU" }, { "loops", "Loops" },
        { "code", "Code size" } },
      .legend = "registers: of 16 bits; threads: of a core at a time; scratch, code: bytes; alu: "
                "estimated cycles of arithmetic" },
    { "turnip",
      { { "lanes", NULL }, { "registers", "Registers used" },
        { "waves", "Max Waves Per Core" }, { "stores", "STP Count", true },
        { "loads", "LDP Count", true }, { "instructions", "Instruction Count" },
        { "nops", "NOPs Count" }, { "alu", "cat3 instructions" }, { "loops", "Loops" } },
      .legend = "registers: vectors of four values; waves: of a core at a time; stores, loads: of "
                "private memory, where the compiler spills; alu: multiply-adds and the like" },
};

const struct rules *rules_find(const char *name)
{
    for (size_t i = 0; i < PM_COUNT(rules); i++)
        if (strcmp(rules[i].name, name) == 0)
            return &rules[i];
    return NULL;
}

double rules_value(const struct rules *r, const struct executable *e, int i)
{
    if (r->columns[i].statistic)
        return executable_value(e, r->columns[i].statistic);
    if (strcmp(r->columns[i].title, "lanes") == 0)
        return e->subgroup;
    return e->loop_vector > 0 ? (double)e->loop_fma / e->loop_vector : 0;
}

static const struct bar bars[] = {
#define BAR(driver, kernel, variant, constants, column, least, most) \
    { #driver, #kernel, #variant, #column, constants, least, most },
#include "bench/compile_bars.def"
#undef BAR
};

bool rules_bar_fits(const struct bar *b, const uint32_t *constants, int count)
{
    const char *text = b->constants;
    unsigned number, value;
    int length;

    for (; sscanf(text, " %u=%u%n", &number, &value, &length) == 2; text += length)
        if (number >= (unsigned)count || constants[number] != value)
            return false;
    return true;
}

const struct bar *rules_bar(int i)
{
    return (size_t)i < PM_COUNT(bars) ? &bars[i] : NULL;
}
