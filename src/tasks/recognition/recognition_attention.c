/* recognition_attention: predictors with attention. A forward predictor writes the text from its
 * first letter, a backward one from its last; with both, the text of the more probable one counts.
 * Training gives the letters of the text (layer attention_decoder), reading searches for the most
 * probable text (attention_search). The loss of a text is the sum of the cross entropies of its
 * letters and its end; the mean over the examples is divided by the number of predictors. */
#include "tasks/recognition/recognition.h"

#include <math.h>

int pm_recognition_directions(const struct pm_task *t)
{
    return t->model.attention_direction == PM_READING_BOTH ? 2 : 1;
}

int pm_recognition_text_outputs(const struct pm_task *t)
{
    return t->model.predictor == PM_PREDICTOR_ATTENTION
               ? PM_RECOGNITION_OUTPUTS * pm_recognition_directions(t) : 1;
}

bool pm_recognition_is_backward(const struct pm_task *t, int k)
{
    return t->model.attention_direction == PM_READING_BACKWARD || k > 0;
}

const char *pm_recognition_field(const struct pm_task *t, int k)
{
    return pm_recognition_is_backward(t, k) ? "backward_labels" : "labels";
}

void pm_recognition_targets(const struct pm_task *t, const int32_t *symbols, int count,
                            int32_t *out)
{
    for (int i = 0; i < t->data.max_num_steps; i++)
        out[i] = i < count ? PM_RECOGNITION_LETTERS + symbols[i]
                           : i == count ? PM_RECOGNITION_END : -1;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

int pm_recognition_check_sequence(const struct pm_heads *heads)
{
    const struct pm_node *x = pm_heads_main(heads);
    const struct pm_shape s = x->out_shape;
    char text[64];

    if (x->out_type != PM_F32 || s.rank < 3 || s.rank > 4 || (s.rank == 4 && s.dim[1] != 1))
        return pm_fail(PM_ECONFIG, "the net's last layer, %s, gives %s, but attention reads "
                       "[pictures, steps, channels] or [pictures, 1, steps, channels]: choose a "
                       "net that reads words, such as crnn, or model.predictor=ctc", x->name,
                       pm_shape_text(s, text));
    return PM_OK;
}

static const char *scope_of(const struct pm_task *t, int k)
{
    return pm_recognition_is_backward(t, k) ? "Backward/Predictor" : "Forward/Predictor";
}

static const char *options_of(struct pm_net *net, const struct pm_task *t)
{
    return pm_arena_printf(net->arena, "classes=%d units=%d attention_units=%d",
                           t->facts.num_classes, t->model.decoder_units, t->model.attention_units);
}

/* The layer divides the loss by all steps of all examples. The weight makes it a sum over the
 * steps, and gives each predictor its share. */
void pm_recognition_add_decoders(struct pm_net *net, struct pm_node *sequence,
                                 const struct pm_task *t)
{
    const int predictors = pm_recognition_directions(t);

    for (int k = 0; k < predictors; k++) {
        struct pm_node *labels = pm_net_find(net, pm_recognition_field(t, k));
        struct pm_node *logits =
            pm_net_add_many(net, scope_of(t, k), (struct pm_node *[]){ sequence, labels }, 2,
                            "attention_decoder %s", options_of(net, t));

        pm_net_add_many(net, k == 0 ? "loss" : "backward_loss",
                        (struct pm_node *[]){ logits, labels }, 2,
                        "softmax_cross_entropy ignore_label=-1 normalize=top_k weight=%.9g",
                        (double)t->data.max_num_steps / predictors);
    }
}

void pm_recognition_add_searches(struct pm_net *net, struct pm_node *sequence,
                                 const struct pm_task *t, bool share, bool logits,
                                 struct pm_outputs *out)
{
    for (int k = 0; k < pm_recognition_directions(t); k++) {
        const struct pm_node *decoder = share ? pm_net_find(net, scope_of(t, k)) : NULL;
        const char *name = share ? pm_arena_printf(net->arena, "%s/search", scope_of(t, k))
                                 : scope_of(t, k);
        const struct pm_node *search =
            pm_net_add_shared(net, name, sequence, decoder,
                              "attention_search %s steps=%d beam_width=%d", options_of(net, t),
                              t->data.max_num_steps, logits ? 1 : t->model.beam_width);

        for (int i = 0; i < PM_RECOGNITION_OUTPUTS && !net->error && !logits; i++)
            pm_outputs_add(net, out, search->out[1 + i], PM_PLACES_NONE);
        if (logits)
            pm_outputs_add(net, out, search, PM_PLACES_NONE);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Totals below this are those of beams that do not exist: see layers/attention_decoder.c. */
static const double NO_BEAM = -1e29;

/* The outputs of one search for one example, [beams][steps] each. */
struct beams {
    const int32_t *symbols, *parents, *columns;
    const float *totals;
    int count, steps;
};

static struct beams beams_of(const struct pm_task *t, const void *const *outputs, int k, size_t i)
{
    const void *const *own = outputs + k * PM_RECOGNITION_OUTPUTS;
    const size_t begin = i * (size_t)t->model.beam_width * (size_t)t->data.max_num_steps;

    return (struct beams){
        .symbols = (const int32_t *)own[PM_RECOGNITION_SYMBOLS] + begin,
        .parents = (const int32_t *)own[PM_RECOGNITION_PARENTS] + begin,
        .columns = (const int32_t *)own[PM_RECOGNITION_COLUMNS] + begin,
        .totals = (const float *)own[PM_RECOGNITION_TOTALS] + begin,
        .count = t->model.beam_width, .steps = t->data.max_num_steps,
    };
}

static float total_of(const struct beams *b, int beam)
{
    return b->totals[beam * b->steps + b->steps - 1];
}

/* Returns the beam with the largest total; the first of equal ones. */
static int best_beam(const struct beams *b)
{
    int best = 0;

    for (int beam = 1; beam < b->count; beam++)
        if (total_of(b, beam) > total_of(b, best))
            best = beam;
    return best;
}

/* Follows the beam back to its beginning. Fills letters and columns [steps] of the steps; returns
 * the number of steps before the first end. */
static int follow(const struct beams *b, int beam, int32_t *symbols, int *columns)
{
    int count = b->steps;

    for (int s = b->steps; s-- > 0;) {
        const int before = b->parents[beam * b->steps + s];

        symbols[s] = b->symbols[beam * b->steps + s];
        columns[s] = b->columns[before * b->steps + s];
        count = symbols[s] == PM_RECOGNITION_END ? s : count;
        beam = before;
    }
    return count;
}

void pm_recognition_read_beams(const struct pm_task *t, const void *const *outputs, size_t i,
                               struct pm_recognised *out)
{
    const size_t steps = (size_t)t->data.max_num_steps;
    struct beams b = beams_of(t, outputs, 0, i);
    bool backward = pm_recognition_is_backward(t, 0);
    int count;
    int32_t *symbols = pm_malloc(steps * sizeof *symbols);
    int *columns = pm_malloc(steps * sizeof *columns);

    if (pm_recognition_directions(t) > 1) {
        const struct beams other = beams_of(t, outputs, 1, i);

        if (total_of(&other, best_beam(&other)) > total_of(&b, best_beam(&b)))
            b = other, backward = true;
    }
    const int best = best_beam(&b);
    const double total = (double)total_of(&b, best);

    *out = (struct pm_recognised){
        .text.code = pm_malloc((steps + 1) * sizeof *out->text.code),
        .columns = pm_malloc((steps + 1) * sizeof *out->columns),
        .score = total > NO_BEAM ? exp(total) : NAN,
        .backward = backward,
    };
    count = isnan(out->score) ? 0 : follow(&b, best, symbols, columns);
    for (int k = 0; k < count; k++) {
        const int s = backward ? count - 1 - k : k;

        if (symbols[s] >= PM_RECOGNITION_LETTERS) {
            out->columns[out->text.count] = columns[s];
            out->text.code[out->text.count++] =
                t->charset->letters[symbols[s] - PM_RECOGNITION_LETTERS];
        }
    }
    pm_free(symbols);
    pm_free(columns);
}
