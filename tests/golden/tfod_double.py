"""Lets graphs of TensorFlow's Object Detection API compute in float64.

The API writes float32 in many places, and some of TensorFlow's operations compute in float32 only.
Inside double() the name tf.float32 means float64, numbers without a type become float64, and those
operations are replaced by plain ones. Suppression still chooses boxes in float32; the boxes and
scores that it returns are the float64 ones. single() is for the graph in float32: it limits the
corners of crops to END, because TensorFlow's crop_and_resize gives 0 where rounding puts the last
sample of a box beyond the last cell. The replacement limits such a sample to its box."""
import contextlib

END = 1 - 2.0**-20


def linear(position, size):
    """The cell before each position in 0..size - 1, the weight of the next one, and whether the
    position is on the map."""
    inside = (position >= 0) & (position <= size - 1)
    low = tf.clip_by_value(tf.floor(position), 0, max(size - 2, 0))
    return tf.cast(low, tf.int32), position - low, inside


def samples(low, high, count, size):
    """Positions [boxes, count] of the samples along an axis of `size` cells."""
    last = size - 1
    if count == 1:
        return ((low + high) / 2 * last)[:, None]
    part = tf.cast(tf.range(count), low.dtype) / (count - 1)
    at = low[:, None] * last + part * ((high - low) * last)[:, None]
    return tf.clip_by_value(at, (tf.minimum(low, high) * last)[:, None],
                            (tf.maximum(low, high) * last)[:, None])


def crop_and_resize(image, boxes, box_ind=None, crop_size=None, box_indices=None, **_):
    image, boxes = tf.convert_to_tensor(image), tf.convert_to_tensor(boxes)
    index = box_ind if box_ind is not None else box_indices
    h, w = image.shape.as_list()[1:3]
    rows, cols = crop_size
    y, fy, y_inside = linear(samples(boxes[:, 0], boxes[:, 2], rows, h), h)
    x, fx, x_inside = linear(samples(boxes[:, 1], boxes[:, 3], cols, w), w)

    def cells(dy, dx):
        yy = tf.tile(tf.minimum(y + dy, h - 1)[:, :, None], [1, 1, cols])
        xx = tf.tile(tf.minimum(x + dx, w - 1)[:, None, :], [1, rows, 1])
        nn = tf.tile(tf.convert_to_tensor(index)[:, None, None], [1, rows, cols])
        return tf.gather_nd(image, tf.stack([nn, yy, xx], 3))

    fy, fx = fy[:, :, None, None], fx[:, None, :, None]
    out = ((1 - fy) * ((1 - fx) * cells(0, 0) + fx * cells(0, 1))
           + fy * ((1 - fx) * cells(1, 0) + fx * cells(1, 1)))
    inside = y_inside[:, :, None] & x_inside[:, None, :]
    return out * tf.cast(inside, out.dtype)[..., None]


def resize_bilinear(images, size, align_corners=False, **_):
    assert align_corners
    n = images.shape.as_list()[0]
    whole = tf.constant([[0., 0., 1., 1.]] * n)
    return crop_and_resize(images, whole, tf.range(n), size)


def suppression(original):
    """non_max_suppression_with_scores for float64."""
    def call(boxes, scores, size, iou_threshold=0.5, score_threshold=0.0, soft_nms_sigma=0.0):
        assert soft_nms_sigma == 0
        real = tf.as_dtype("float32")
        index, _ = original(tf.cast(boxes, real), tf.cast(scores, real), size, iou_threshold,
                            score_threshold, 0.0)
        return index, tf.gather(scores, index)
    return call


def huber_loss(labels, predictions, weights=1.0, delta=1.0, loss_collection=None, reduction=None):
    error = tf.abs(predictions - labels)
    small = tf.minimum(error, delta)
    return (0.5 * small * small + delta * (error - small)) * weights


def holds_floats(value):
    if isinstance(value, (list, tuple)):
        return any(map(holds_floats, value))
    return isinstance(value, float)


@contextlib.contextmanager
def replaced(*names):
    """Replaces attributes: (module, name, value) ..."""
    before = [getattr(module, name) for module, name, _ in names]
    for module, name, value in names:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(names, before):
            setattr(module, name, value)


def double(module):
    """module: TensorFlow, as tfod.load() returns it."""
    global tf
    tf = module
    wide = tf.float64

    def typed(function, position):
        """dtype is the argument with this number; its default becomes float64."""
        def call(*arguments, **options):
            if len(arguments) <= position:
                options.setdefault("dtype", wide)
            return function(*arguments, **options)
        return call

    constant = tf.constant

    def wide_constant(value, dtype=None, *arguments, **options):
        return constant(value, dtype or (wide if holds_floats(value) else None), *arguments,
                        **options)
    def mixed(function):
        """A number before a tensor becomes float64."""
        def call(x, y, name=None):
            return function(constant(x, wide) if isinstance(x, float) else x, y, name=name)
        return call

    stack = tf.stack

    def wide_stack(values, *arguments, **options):
        values = [constant(x, wide) if isinstance(x, float) else x for x in values] \
            if isinstance(values, (list, tuple)) else values
        return stack(values, *arguments, **options)

    return replaced(
        (tf, "stack", wide_stack),
        *((tf, name, mixed(getattr(tf, name))) for name in
          ("greater", "greater_equal", "less", "less_equal", "maximum", "minimum", "multiply")),
        (tf, "zeros", typed(tf.zeros, 1)), (tf, "ones", typed(tf.ones, 1)),
        (tf, "one_hot", typed(tf.one_hot, 5)), (tf, "constant", wide_constant),
        (tf, "to_float", lambda x, name=None: tf.cast(x, wide)),
        (tf.image, "crop_and_resize", crop_and_resize),
        (tf.image, "resize_bilinear", resize_bilinear),
        (tf.image, "non_max_suppression_with_scores",
         suppression(tf.image.non_max_suppression_with_scores)),
        (tf.losses, "huber_loss", huber_loss), (tf, "float32", wide))


def single(module):
    global tf
    tf = module
    original = tf.image.crop_and_resize

    def limited(image, boxes, *arguments, **options):
        return original(image, tf.minimum(boxes, END), *arguments, **options)
    return replaced((tf.image, "crop_and_resize", limited))
