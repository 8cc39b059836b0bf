/* word_distance: word_distance.h has the contract. */
#include "tasks/recognition/word_distance.h"

#include <string.h>

int pm_edit_distance(const struct pm_letters *a, const struct pm_letters *b)
{
    int *row = pm_malloc(((size_t)b->count + 1) * sizeof *row), result;

    for (int j = 0; j <= b->count; j++)
        row[j] = j;
    for (int i = 1; i <= a->count; i++) {
        int diagonal = row[0]; /* of the last row, one column to the left */

        row[0] = i;
        for (int j = 1; j <= b->count; j++) {
            const int above = row[j];
            const int replaced = diagonal + (a->code[i - 1] != b->code[j - 1]);
            const int other = (above < row[j - 1] ? above : row[j - 1]) + 1;

            row[j] = replaced < other ? replaced : other;
            diagonal = above;
        }
    }
    result = row[b->count];
    pm_free(row);
    return result;
}

void pm_letters_strip(struct pm_letters *l)
{
    int count = 0;

    for (int i = 0; i < l->count; i++) {
        const uint32_t c = l->code[i];

        if (c >= 'A' && c <= 'Z')
            l->code[count++] = c - 'A' + 'a';
        else if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'))
            l->code[count++] = c;
    }
    l->count = count;
}

bool pm_letters_equal(const struct pm_letters *a, const struct pm_letters *b)
{
    return a->count == b->count &&
           (a->count == 0 ||
            memcmp(a->code, b->code, (size_t)a->count * sizeof *a->code) == 0);
}

int pm_nearest_word(const struct pm_letters *word, const struct pm_letters *lexicon, int count)
{
    int best = 0, least = pm_edit_distance(word, &lexicon[0]);

    for (int i = 1; i < count; i++) {
        const int distance = pm_edit_distance(word, &lexicon[i]);

        if (distance < least) {
            least = distance;
            best = i;
        }
    }
    return best;
}
