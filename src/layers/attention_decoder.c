/* attention_decoder, attention_search: an LSTM cell that writes a text, and at each step attends to
 * a part of a sequence (Bahdanau et al., 2014). Rules: the text recognition fork of TensorFlow's
 * Object Detection API. Its attention is computed from the state before the step, and its logits
 * from the cell's output alone. With m_j, the sequence's t vectors:
 *
 *     k_j     = m_j memory_layer                              once for all steps
 *     e_j     = sum over v tanh(k_j + h query_layer)
 *     context = sum of softmax(e)_j m_j
 *     h, c    = LSTM cell of [one_hot(symbol), context], h, c         see lstm.c
 *     logits  = h dense + bias
 *
 * The state begins with h = c = 0. Class 0 is the start, 1 the end, and letters follow. The first
 * symbol is the start, then each step reads the class that the step before has written.
 *
 * attention_decoder trains: the classes come from the labels (teacher forcing). Inputs: memory
 * [n, t, c] or [n, 1, t, c] and labels, I32 [n, S]: a text's classes and its end. A label below 0
 * is a padded step: the state is 0, the logits are those of a state of 0, and no gradient passes.
 * Output: logits [n, S, classes].
 *
 * attention_search reads: each step continues the `beam_width` most probable texts, W
 * (attention_choice.c). Input: memory. It has the variables of a decoder (`share`). No gradient.
 * Outputs, for all beams w of example i:
 *
 *     logits   [n, W, S, classes]
 *     symbols  I32 [n, W, S]   the class of each step
 *     parents  I32 [n, W, S]   the beam of the step before that this one continues
 *     columns  I32 [n, W, S]   the j with the largest weight in the step's attention. Beams are
 *                              chosen after it. So the letter of step s of beam w has the column
 *                              columns[parents[w][s]][s]
 *     totals   [n, W, S]       ln of the probability, as the sum over the steps so far; at most
 *                              PM_ATTENTION_NEVER: there is no such beam
 *
 * A text is read backwards from the beam with the largest total at the last step. Beams stay on the
 * device: a plan has a fixed number of calls and nothing is read back between steps.
 *
 * A step is two calls forward, three backward, and four in a search (attention.h). As in lstm.c
 * each takes whole buffers, and the step's index is among its params. */
#include <limits.h>

#include "layers/attention.h"
#include "layers/attention_layer.h"
#include "layers/conv_rows.h"
#include "layers/infer.h"

static const struct pm_opt decoder_opts[] = { PM_ATTENTION_OPTIONS, { 0 } };
static const struct pm_opt search_opts[] = {
    PM_ATTENTION_OPTIONS,
    PM_INT(pm_attention_cfg, steps, 30, 1, 4096, "most symbols of a text, with its end"),
    PM_INT(pm_attention_cfg, beam_width, 1, 1, PM_ATTENTION_BEAMS, "texts that are continued"),
    { 0 },
};

/* ---- shapes ---------------------------------------------------------------------------------- */

struct attention_params pm_attention_params_of(const struct pm_node *n)
{
    const struct pm_attention_cfg *cfg = n->cfg;
    const struct pm_shape x = n->in[PM_ATTENTION_MEMORY]->out_shape;
    const bool search = n->layer == &pm_layer_attention_search;
    const int beams = search ? cfg->beam_width : 1;

    return (struct attention_params){
        .n = x.dim[0] * beams, .beams = beams,
        .steps = search ? cfg->steps : n->in[PM_ATTENTION_LABELS]->out_shape.dim[1],
        .t = x.dim[x.rank - 2], .c = x.dim[x.rank - 1], .attention = cfg->attention_units,
        .units = cfg->units, .classes = cfg->classes, .search = search,
        .forget_bias = cfg->forget_bias,
    };
}

static int check_inputs(const struct pm_node *n)
{
    static const enum pm_type types[] = { PM_F32, PM_I32 };
    const struct pm_shape x = n->in[PM_ATTENTION_MEMORY]->out_shape;
    int err = PM_OK;
    char text[64];

    PM_TRY(pm_need_types(n, types, -1, "memory and labels"));
    if (!pm_is_sequence(x) || x.dim[x.rank - 2] > PM_ATTENTION_MOST)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: the input has shape %s instead of n x t x c or n x 1 x t x "
                       "c, with t of 1..%d. Give c numbers for each of t steps", n->name,
                       pm_shape_text(x, text), PM_ATTENTION_MOST));
    if (n->inputs > PM_ATTENTION_LABELS) {
        const struct pm_shape l = n->in[PM_ATTENTION_LABELS]->out_shape;

        if (l.rank != 2 || l.dim[0] != x.dim[0] || l.dim[1] < 1)
            PM_TRY(pm_fail(PM_ECONFIG, "%s: labels have shape %s instead of %d x steps. Give each "
                           "example its classes in a row", n->name, pm_shape_text(l, text),
                           x.dim[0]));
    }
out:
    return err;
}

static int check_size(const struct pm_node *n, const struct attention_params *p)
{
    const double rows = (double)p->n * p->steps, most = INT_MAX;
    const double wide = (double)p->classes + p->c + p->units;
    char text[64];

    if (rows * wide > most || rows * 4 * p->units > most || rows * p->t > most ||
        (double)p->n * p->t * p->attention > most || wide * 4 * p->units > most)
        return pm_fail(PM_ECONFIG, "%s: %d steps of %d classes and %d units for an input of %s "
                       "need more than 2^31 - 1 numbers. Make the batch smaller", n->name,
                       p->steps, p->classes, p->units,
                       pm_shape_text(n->in[PM_ATTENTION_MEMORY]->out_shape, text));
    return PM_OK;
}

static int add_variables(struct pm_node *n, const struct attention_params *p)
{
    const struct pm_attention_cfg *cfg = n->cfg;
    const int wide = p->classes + p->c + p->units, four = 4 * p->units;
    struct pm_init init, kernel, bias;
    int err = PM_OK;

    PM_TRY(pm_init_parse(cfg->weights_init, &init, n->name));
    PM_TRY(pm_init_parse(cfg->kernel_init, &kernel, n->name));
    PM_TRY(pm_init_parse(cfg->bias_init, &bias, n->name));
    PM_TRY(pm_node_variable(n, "memory_layer/kernel", PM_SHAPE2(p->c, p->attention), init, p->c,
                            p->attention, true, cfg->regularize));
    PM_TRY(pm_node_variable(n, "query_layer/kernel", PM_SHAPE2(p->units, p->attention), init,
                            p->units, p->attention, true, cfg->regularize));
    PM_TRY(pm_node_variable(n, "attention_v", PM_SHAPE1(p->attention), init, p->attention, 1, true,
                            false));
    PM_TRY(pm_node_variable(n, "lstm_cell/kernel", PM_SHAPE2(wide, four), kernel, wide, four, true,
                            cfg->regularize));
    PM_TRY(pm_node_variable(n, "lstm_cell/bias", PM_SHAPE1(four), bias, wide, four, true, false));
    PM_TRY(pm_node_variable(n, "dense/kernel", PM_SHAPE2(p->units, p->classes), init, p->units,
                            p->classes, true, cfg->regularize));
    PM_TRY(pm_node_variable(n, "dense/bias", PM_SHAPE1(p->classes), bias, p->units, p->classes,
                            true, false));
out:
    return err;
}

static int infer(struct pm_node *n)
{
    struct attention_params p;
    int err = PM_OK;

    PM_TRY(check_inputs(n));
    p = pm_attention_params_of(n);
    PM_TRY(check_size(n, &p));
    PM_TRY(add_variables(n, &p));
    n->out_type = PM_F32;
    if (p.search) {
        const struct pm_shape each = PM_SHAPE3(p.n / p.beams, p.beams, p.steps);

        n->out_shape = PM_SHAPE4(p.n / p.beams, p.beams, p.steps, p.classes);
        for (int k = PM_ATTENTION_SYMBOLS; k <= PM_ATTENTION_TOTALS && err == PM_OK; k++)
            err = pm_node_output(n, each, k == PM_ATTENTION_TOTALS ? PM_F32 : PM_I32);
    } else {
        n->out_shape = PM_SHAPE3(p.n, p.steps, p.classes);
    }
out:
    return err;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* A product of `rows` rows with a variable [in, out]. */
static struct conv2d_params product_of(int rows, int in, int out)
{
    return (struct conv2d_params){
        .n = rows, .h = 1, .w = 1, .c = in, .oh = 1, .ow = 1, .k = out, .kh = 1, .kw = 1,
        .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1,
    };
}

static struct pm_tensor keys_of(struct pm_node *n, struct pm_calls *c,
                                const struct attention_params *p, struct pm_tensor keys)
{
    const struct conv2d_params product =
        product_of(p->n / p->beams * p->t, p->c, p->attention);

    pm_conv_call(c, &pm_conv2d_fwd, &product, n->xs[PM_ATTENTION_MEMORY],
                 n->w[PM_ATTENTION_KEY_KERNEL], keys);
    return keys;
}

/* What the calls of the steps write. columns and parents: PM_NO_TENSOR in training. */
struct states {
    struct pm_tensor keys, q, alpha, context, gates, c, y, symbols, parents, columns;
};

static void forward_step(const struct pm_node *n, struct pm_calls *c,
                         const struct attention_params *p, const struct states *s)
{
    const struct pm_tensor none = PM_NO_TENSOR;
    const bool first = p->at == 0;

    pm_call(c, &pm_attention_weights, (size_t)p->n, p,
            PM_BUFS(s->keys, n->xs[PM_ATTENTION_MEMORY], n->w[PM_ATTENTION_QUERY_KERNEL],
                    n->w[PM_ATTENTION_V], first ? none : s->y, first ? none : s->parents, s->q,
                    s->alpha, s->context, s->columns));
    pm_call(c, &pm_attention_cell, (size_t)p->n * (size_t)p->units, p,
            PM_BUFS(n->w[PM_ATTENTION_CELL_KERNEL], n->w[PM_ATTENTION_CELL_BIAS],
                    first && p->search ? none : s->symbols, first ? none : s->parents, s->context,
                    none, s->gates, s->c, s->y));
}

enum { SAVED_KEYS, SAVED_Q, SAVED_ALPHA, SAVED_CONTEXT, SAVED_GATES, SAVED_C, SAVED_Y };

static void decoder_forward(struct pm_node *n, struct pm_calls *c)
{
    struct attention_params p = pm_attention_params_of(n);
    const struct conv2d_params dense = product_of(p.n * p.steps, p.units, p.classes);
    const struct bias_act_params tail = { .count = p.n * p.steps * p.classes,
                                          .channels = p.classes, .activation = PM_ACT_NONE };
    const struct pm_tensor none = PM_NO_TENSOR, sums = pm_temp(c, n->y.shape, PM_F32);
    const int r = p.n, t = p.steps;
    const struct states s = {
        .keys = keys_of(n, c, &p, pm_save(c, n, SAVED_KEYS, PM_SHAPE3(r, p.t, p.attention),
                                          PM_F32)),
        .q = pm_save(c, n, SAVED_Q, PM_SHAPE3(r, t, p.attention), PM_F32),
        .alpha = pm_save(c, n, SAVED_ALPHA, PM_SHAPE3(r, t, p.t), PM_F32),
        .context = pm_save(c, n, SAVED_CONTEXT, PM_SHAPE3(r, t, p.c), PM_F32),
        .gates = pm_save(c, n, SAVED_GATES, PM_SHAPE3(r, t, 4 * p.units), PM_F32),
        .c = pm_save(c, n, SAVED_C, PM_SHAPE3(r, t, p.units), PM_F32),
        .y = pm_save(c, n, SAVED_Y, PM_SHAPE3(r, t, p.units), PM_F32),
        .symbols = n->xs[PM_ATTENTION_LABELS], .parents = none, .columns = none,
    };

    for (p.at = 0; p.at < t; p.at++)
        forward_step(n, c, &p, &s);
    pm_conv_call(c, &pm_conv2d_fwd, &dense, s.y, n->w[PM_ATTENTION_DENSE_KERNEL], sums);
    pm_call(c, &pm_bias_act_fwd, (size_t)tail.count, &tail,
            PM_BUFS(sums, n->w[PM_ATTENTION_DENSE_BIAS], n->y));
}

static void search_forward(struct pm_node *n, struct pm_calls *c)
{
    struct attention_params p = pm_attention_params_of(n);
    const int r = p.n, t = p.steps;
    const struct states s = {
        .keys = keys_of(n, c, &p, pm_temp(c, PM_SHAPE3(r / p.beams, p.t, p.attention), PM_F32)),
        .q = pm_temp(c, PM_SHAPE3(r, t, p.attention), PM_F32),
        .alpha = pm_temp(c, PM_SHAPE3(r, t, p.t), PM_F32),
        .context = pm_temp(c, PM_SHAPE3(r, t, p.c), PM_F32),
        .gates = pm_temp(c, PM_SHAPE3(r, t, 4 * p.units), PM_F32),
        .c = pm_temp(c, PM_SHAPE3(r, t, p.units), PM_F32),
        .y = pm_temp(c, PM_SHAPE3(r, t, p.units), PM_F32),
        .symbols = n->ys[PM_ATTENTION_SYMBOLS], .parents = n->ys[PM_ATTENTION_PARENTS],
        .columns = n->ys[PM_ATTENTION_COLUMNS],
    };

    for (p.at = 0; p.at < t; p.at++) {
        forward_step(n, c, &p, &s);
        pm_call(c, &pm_attention_logits, (size_t)r, &p,
                PM_BUFS(s.y, n->w[PM_ATTENTION_DENSE_KERNEL], n->w[PM_ATTENTION_DENSE_BIAS],
                        n->ys[PM_ATTENTION_LOGITS]));
        pm_call(c, &pm_attention_select, (size_t)(r / p.beams), &p,
                PM_BUFS(n->ys[PM_ATTENTION_LOGITS], s.symbols, s.parents,
                        n->ys[PM_ATTENTION_TOTALS]));
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

struct gradients {
    struct pm_tensor dy, dz, dc, dcontext, dscore, dq;
};

static void backward_step(const struct pm_node *n, struct pm_calls *c,
                          const struct attention_params *p, const struct gradients *d)
{
    const struct pm_tensor none = PM_NO_TENSOR, *s = n->saved;

    pm_call(c, &pm_attention_back, (size_t)p->n * (size_t)p->units, p,
            PM_BUFS(d->dy, p->at + 1 < p->steps ? d->dq : none, n->w[PM_ATTENTION_QUERY_KERNEL],
                    s[SAVED_GATES], s[SAVED_C], n->w[PM_ATTENTION_CELL_KERNEL],
                    n->xs[PM_ATTENTION_LABELS], none, d->dz, d->dc));
    pm_call(c, &pm_attention_back_context, (size_t)p->n, p,
            PM_BUFS(d->dz, n->w[PM_ATTENTION_CELL_KERNEL], d->dcontext));
    pm_call(c, &pm_attention_back_weights, (size_t)p->n, p,
            PM_BUFS(d->dcontext, n->xs[PM_ATTENTION_MEMORY], s[SAVED_KEYS], n->w[PM_ATTENTION_V],
                    s[SAVED_Q], s[SAVED_ALPHA], d->dscore, d->dq));
}

/* The gradients of the cell and of the query's kernel. */
static void cell_gradients(struct pm_node *n, struct pm_calls *c,
                           const struct attention_params *p, const struct gradients *d)
{
    const int rows = p->n * p->steps, wide = p->classes + p->c + p->units;
    const struct conv2d_params cell = product_of(rows, wide, 4 * p->units);
    const struct conv2d_params query = product_of(rows, p->units, p->attention);
    const struct pm_tensor x = pm_temp(c, PM_SHAPE2(rows, wide), PM_F32);
    const struct pm_tensor state = pm_temp(c, PM_SHAPE2(rows, p->units), PM_F32);

    if (pm_has(n->dw[PM_ATTENTION_CELL_KERNEL]) || pm_has(n->dw[PM_ATTENTION_QUERY_KERNEL]))
        pm_call(c, &pm_attention_inputs, (size_t)rows, p,
                PM_BUFS(n->xs[PM_ATTENTION_LABELS], n->saved[SAVED_CONTEXT], n->saved[SAVED_Y], x,
                        state));
    if (pm_has(n->dw[PM_ATTENTION_CELL_KERNEL]))
        pm_conv_call(c, &pm_conv2d_bwd_filter, &cell, x, n->dw[PM_ATTENTION_CELL_KERNEL], d->dz);
    if (pm_has(n->dw[PM_ATTENTION_QUERY_KERNEL]))
        pm_conv_call(c, &pm_conv2d_bwd_filter, &query, state, n->dw[PM_ATTENTION_QUERY_KERNEL],
                     d->dq);
    if (pm_has(n->dw[PM_ATTENTION_CELL_BIAS]))
        pm_add_rows(c, d->dz, n->dw[PM_ATTENTION_CELL_BIAS]);
}

/* The gradients of v, of the keys' kernel and of the sequence. */
static void memory_gradients(struct pm_node *n, struct pm_calls *c,
                             const struct attention_params *p, const struct gradients *d)
{
    const struct conv2d_params product = product_of(p->n * p->t, p->c, p->attention);
    const struct pm_tensor dkeys = pm_temp(c, n->saved[SAVED_KEYS].shape, PM_F32);
    const struct pm_tensor dv = pm_temp(c, n->saved[SAVED_KEYS].shape, PM_F32);
    const struct pm_tensor dmemory = n->dxs[PM_ATTENTION_MEMORY];

    if (pm_has(dmemory) || pm_has(n->dw[PM_ATTENTION_V]) ||
        pm_has(n->dw[PM_ATTENTION_KEY_KERNEL]))
        pm_call(c, &pm_attention_back_keys, (size_t)p->n * (size_t)p->t, p,
                PM_BUFS(n->saved[SAVED_KEYS], n->w[PM_ATTENTION_V], n->saved[SAVED_Q], d->dscore,
                        dkeys, dv));
    if (pm_has(n->dw[PM_ATTENTION_V]))
        pm_add_rows(c, dv, n->dw[PM_ATTENTION_V]);
    if (pm_has(n->dw[PM_ATTENTION_KEY_KERNEL]))
        pm_conv_call(c, &pm_conv2d_bwd_filter, &product, n->xs[PM_ATTENTION_MEMORY],
                     n->dw[PM_ATTENTION_KEY_KERNEL], dkeys);
    if (!pm_has(dmemory))
        return;
    pm_conv_call(c, &pm_conv2d_bwd_data, &product, dmemory, n->w[PM_ATTENTION_KEY_KERNEL], dkeys);
    pm_call(c, &pm_attention_back_memory, (size_t)p->n * (size_t)p->t, p,
            PM_BUFS(n->saved[SAVED_ALPHA], d->dcontext, dmemory));
}

static void decoder_backward(struct pm_node *n, struct pm_calls *c)
{
    struct attention_params p = pm_attention_params_of(n);
    const struct conv2d_params dense = product_of(p.n * p.steps, p.units, p.classes);
    const struct pm_tensor logits = pm_view(n->dy, PM_SHAPE2(p.n * p.steps, p.classes));
    const struct gradients d = {
        .dy = pm_temp(c, n->saved[SAVED_Y].shape, PM_F32),
        .dz = pm_temp(c, n->saved[SAVED_GATES].shape, PM_F32),
        .dc = pm_temp(c, PM_SHAPE2(p.n, p.units), PM_F32),
        .dcontext = pm_temp(c, n->saved[SAVED_CONTEXT].shape, PM_F32),
        .dscore = pm_temp(c, n->saved[SAVED_ALPHA].shape, PM_F32),
        .dq = pm_temp(c, n->saved[SAVED_Q].shape, PM_F32),
    };

    pm_conv_call(c, &pm_conv2d_bwd_data, &dense, d.dy, n->w[PM_ATTENTION_DENSE_KERNEL], logits);
    if (pm_has(n->dw[PM_ATTENTION_DENSE_KERNEL]))
        pm_conv_call(c, &pm_conv2d_bwd_filter, &dense, n->saved[SAVED_Y],
                     n->dw[PM_ATTENTION_DENSE_KERNEL], logits);
    if (pm_has(n->dw[PM_ATTENTION_DENSE_BIAS]))
        pm_add_rows(c, logits, n->dw[PM_ATTENTION_DENSE_BIAS]);
    for (p.at = p.steps; p.at-- > 0;)
        backward_step(n, c, &p, &d);
    cell_gradients(n, c, &p, &d);
    memory_gradients(n, c, &p, &d);
}

const struct pm_layer pm_layer_attention_decoder = {
    .name = "attention_decoder",
    .help = "logits of a text, given its letters, from a sequence (LSTM with attention): inputs "
            "memory and labels",
    .opts = decoder_opts, .cfg_size = sizeof(struct pm_attention_cfg), .min_inputs = 2,
    .max_inputs = 2, .accumulates = true, .infer = infer, .forward = decoder_forward,
    .backward = decoder_backward, .onnx = pm_attention_onnx,
};
const struct pm_layer pm_layer_attention_search = {
    .name = "attention_search",
    .help = "the most probable texts of a sequence by the variables of an attention_decoder (beam "
            "search); no gradient",
    .opts = search_opts, .cfg_size = sizeof(struct pm_attention_cfg), .min_inputs = 1,
    .max_inputs = 1, .variables_of = &pm_layer_attention_decoder, .infer = infer,
    .forward = search_forward, .onnx = pm_attention_onnx,
};
