/* recognition_read: the text that a net's logits stand for. */
#include "tasks/recognition/recognition.h"

#include <math.h>

int pm_recognition_steps(const struct pm_task *t, struct pm_shape s)
{
    if (s.rank < 3 || s.dim[s.rank - 1] != t->facts.num_classes)
        return 0;
    return s.rank == 3 ? s.dim[1] : s.rank == 4 && s.dim[1] == 1 ? s.dim[2] : 0;
}

/* Returns the class with the largest logit, or -1 if a logit is not finite. *share: its
 * probability. */
static int best_class(const float *z, int classes, double *share)
{
    int best = 0;
    double sum = 0;

    for (int c = 0; c < classes; c++) {
        if (!isfinite(z[c]))
            return -1;
        best = z[c] > z[best] ? c : best;
    }
    for (int c = 0; c < classes; c++)
        sum += exp((double)z[c] - z[best]);
    *share = 1 / sum;
    return best;
}

void pm_recognition_read(const struct pm_task *t, const float *logits, int steps,
                         struct pm_letters *out, double *score)
{
    int before = pm_recognition_blank(t);

    *out = (struct pm_letters){ .code = pm_malloc(((size_t)steps + 1) * sizeof *out->code) };
    *score = 1;
    for (int i = 0; i < steps; i++) {
        double share;
        const int best = best_class(logits + (size_t)i * (size_t)t->facts.num_classes,
                                    t->facts.num_classes, &share);

        if (best < 0) {
            out->count = 0;
            *score = NAN;
            return;
        }
        *score *= share;
        if (best != before && best != pm_recognition_blank(t))
            out->code[out->count++] = t->charset->letters[best];
        before = best;
    }
}

void pm_recognition_read_example(const struct pm_task *t, const void *const *outputs, size_t i,
                                 struct pm_recognised *out)
{
    const size_t size = (size_t)t->steps * (size_t)t->facts.num_classes;

    *out = (struct pm_recognised){ 0 };
    if (t->model.predictor == PM_PREDICTOR_ATTENTION)
        pm_recognition_read_beams(t, outputs, i, out);
    else
        pm_recognition_read(t, (const float *)outputs[0] + i * size, t->steps, &out->text,
                            &out->score);
}

void pm_recognised_free(struct pm_recognised *r)
{
    pm_letters_free(&r->text);
    pm_free(r->columns);
    r->columns = NULL;
}
