/* Python's shuffle, by which TF-Slim splits and orders data sets: the Mersenne twister MT19937
 * (Matsumoto and Nishimura 1998) seeded by an array, numbers below n by rejection from the upper
 * bits, and Fisher and Yates's exchange from the end. */
#include <string.h>

#include "data/convert/convert.h"

enum { WORDS = 624, SHIFT = 397 };

struct twister {
    uint32_t word[WORDS];
    int next;
};

static void seed_by_number(struct twister *t, uint32_t seed)
{
    t->word[0] = seed;
    for (uint32_t i = 1; i < WORDS; i++)
        t->word[i] = 1812433253u * (t->word[i - 1] ^ t->word[i - 1] >> 30) + i;
    t->next = WORDS;
}

/* The seed's 32-bit digits, the lowest first, are the key. */
static void seed_by_array(struct twister *t, const uint32_t *key, int length)
{
    uint32_t *w = t->word;
    int i = 1, j = 0;

    seed_by_number(t, 19650218u);
    for (int k = 0; k < WORDS; k++) { /* WORDS is above any length here */
        w[i] = (w[i] ^ (w[i - 1] ^ w[i - 1] >> 30) * 1664525u) + key[j] + (uint32_t)j;
        if (++i == WORDS)
            w[0] = w[WORDS - 1], i = 1;
        j = (j + 1) % length;
    }
    for (int k = 0; k < WORDS - 1; k++) {
        w[i] = (w[i] ^ (w[i - 1] ^ w[i - 1] >> 30) * 1566083941u) - (uint32_t)i;
        if (++i == WORDS)
            w[0] = w[WORDS - 1], i = 1;
    }
    w[0] = 0x80000000u;
}

static void refill(struct twister *t)
{
    uint32_t *w = t->word;

    for (int i = 0; i < WORDS; i++) {
        const uint32_t y = (w[i] & 0x80000000u) | (w[(i + 1) % WORDS] & 0x7fffffffu);
        w[i] = w[(i + SHIFT) % WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    t->next = 0;
}

static uint32_t draw(struct twister *t)
{
    if (t->next == WORDS)
        refill(t);
    uint32_t y = t->word[t->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* 0..n-1 by as many upper bits as n has. */
static uint32_t below(struct twister *t, uint32_t n)
{
    const int bits = 32 - __builtin_clz(n);
    uint32_t v;

    do
        v = draw(t) >> (32 - bits);
    while (v >= n);
    return v;
}

void pm_python_shuffle(uint64_t seed, size_t count, uint32_t *order)
{
    struct twister t = { .next = WORDS };
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };

    seed_by_array(&t, key, key[1] ? 2 : 1);
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    for (size_t i = count; i-- > 1;) {
        const uint32_t j = below(&t, (uint32_t)i + 1), saved = order[i];
        order[i] = order[j];
        order[j] = saved;
    }
}
