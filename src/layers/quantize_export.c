/* Exports quantised values to ONNX: QuantizeLinear and DequantizeLinear surround the operators that
 * a runtime then computes in integers. */
#include "layers/quantize_rows.h"

#include "onnx/export_nodes.h"

/* ONNX allows no step of 0. A range of width 0 contains only 0. */
static float step_of(float step)
{
    return step > 0 ? step : 1e-30f;
}

const char *pm_quant_export(struct pm_export *g, const char *x, const struct pm_quant_steps *s)
{
    const uint8_t zero_point = (uint8_t)s->zero;
    const char *scale = pm_export_number(g, step_of(s->step));
    const char *zero = pm_export_tensor(g, "zero_point", PM_DTYPE_U8, 0, NULL, &zero_point);

    x = pm_export_op(g, "QuantizeLinear", PM_VALUES(x, scale, zero));
    return pm_export_op(g, "DequantizeLinear", PM_VALUES(x, scale, zero));
}

const char *pm_quant_export_integers(struct pm_export *g, const char *suffix, enum pm_dtype type,
                                     int rank, const int64_t *dim, const void *data, float step,
                                     int zero)
{
    const uint8_t byte = (uint8_t)zero;
    const int32_t word = zero;
    const void *zero_point = type == PM_DTYPE_U8 ? (const void *)&byte : &word;
    const char *x = pm_export_tensor(g, suffix, type, rank, dim, data);
    const char *scale = pm_export_number(g, step_of(step));

    return pm_export_op(
        g, "DequantizeLinear",
        PM_VALUES(x, scale, pm_export_tensor(g, "zero_point", type, 0, NULL, zero_point)));
}
