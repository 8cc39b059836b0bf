"""A net as `pumice config show --layers --json` lists it: options with their defaults, and shapes.
torch_net.py and jax_net.py make the same net of it, layer for layer."""

DEFAULTS = {
    "conv2d": {"filters": 32, "kernel": [3], "stride": [1], "dilation": [1], "padding": "same",
               "pad": [], "groups": 1, "bias": True, "activation": "none"},
    "depthwise_conv2d": {"multiplier": 1, "kernel": [3], "stride": [1], "dilation": [1],
                         "padding": "same", "pad": [], "bias": True, "activation": "none"},
    "fully_connected": {"units": 0, "bias": True, "activation": "none"},
    "batch_norm": {"epsilon": 1e-3, "decay": 0.997, "scale": True, "center": True,
                   "activation": "none"},
    "max_pool": {"kernel": [2], "stride": [2], "dilation": [1], "padding": "valid", "pad": []},
    "avg_pool": {"kernel": [2], "stride": [2], "padding": "valid", "pad": []},
    "global_pool": {},
    "add": {"activation": "none"},
    "multiply": {},
    "concat": {"axis": 3},
    "dropout": {"keep": 0.5},
    "flatten": {},
    "relu": {},
    "hard_sigmoid": {},
    "hard_swish": {},
    "resize": {"size": []},
    "slice": {"begin": []},
}
# Options without an effect on the work of a step, and those that need one certain value.
IGNORED = {"name", "layer", "inputs", "weights_init", "bias_init", "regularize", "scope",
           "weights_name", "moving_variance"}
CERTAIN = {("resize", "coordinates"): "align_corners"}


class Layer:
    """One layer: its options as attributes, `inputs` (indices of layers, -1: the pictures), and the
    shapes [h, w, c] of its first input and of its output. A flat shape is [c]."""

    def __init__(self, index, entry, inputs, shapes):
        self.name, self.kind, self.index, self.inputs = entry["name"], entry["layer"], index, inputs
        if self.kind not in DEFAULTS:
            raise ValueError(f"{self.name}: layer {self.kind} is not in layer_list.py")
        options = dict(DEFAULTS[self.kind])
        for key, value in entry.items():
            if key in IGNORED:
                continue
            if key not in options and CERTAIN.get((self.kind, key)) != value:
                raise ValueError(f"{self.name}: {key}={value} is not in layer_list.py")
            options[key] = value
        self.__dict__.update(options)
        self.x = shapes[0]
        self.readers = 0
        self.shape = self.shape_of(shapes)

    def __getattr__(self, name):
        raise AttributeError(f"layer {self.kind} has no option {name}")

    def axis(self, i):
        """(size, kernel, stride, dilation) along the height (0) or the width (1)"""
        dilation = self.__dict__.get("dilation", [1])
        return [self.x[i]] + [v[i % len(v)] for v in (self.kernel, self.stride, dilation)]

    def span(self, i):
        """(pixels of output, padding before, padding after) along an axis, by TensorFlow's rules"""
        size, kernel, stride, dilation = self.axis(i)
        reach = (kernel - 1) * dilation + 1
        if self.padding == "same":
            out = -(-size // stride)
            total = max((out - 1) * stride + reach - size, 0)
            return out, total // 2, total - total // 2
        before, after = self.pad[2 * i:2 * i + 2] if self.padding == "explicit" else (0, 0)
        return (size + before + after - reach) // stride + 1, before, after

    def equal_padding(self):
        """Padding for both sides of [height, width] that gives the same shape, or None. PyTorch
        pads both sides equally; the shape and the work are then the same."""
        both = []
        for i in (0, 1):
            out, before, after = self.span(i)
            size, kernel, stride, dilation = self.axis(i)
            most = max(before, after)
            if (size + 2 * most - (kernel - 1) * dilation - 1) // stride + 1 != out:
                return None
            both.append(most)
        return both

    def shape_of(self, shapes):
        if self.kind in ("conv2d", "depthwise_conv2d", "max_pool", "avg_pool"):
            c = self.x[2]
            if self.kind == "depthwise_conv2d":
                c *= self.multiplier
            return [self.span(0)[0], self.span(1)[0], self.filters if self.kind == "conv2d" else c]
        if self.kind == "global_pool":
            return [1, 1, self.x[2]]
        if self.kind == "fully_connected":
            return [self.units]
        if self.kind == "flatten":
            count = 1
            for n in self.x:
                count *= n
            return [count]
        if self.kind == "concat":
            return [*self.x[:2], sum(s[2] for s in shapes)]
        if self.kind == "resize":
            return [*self.size, self.x[2]]
        if self.kind == "slice":
            return [n - b for n, b in zip(self.x, self.begin[1:])]
        return list(self.x)


def layers_of(entries, channels, size):
    """Returns the list of Layers. An entry without "inputs" reads the one before it."""
    layers, index = [], {}
    for i, entry in enumerate(entries):
        inputs = [index[name] for name in entry["inputs"]] if "inputs" in entry else [i - 1]
        shapes = [layers[k].shape if k >= 0 else [size, size, channels] for k in inputs]
        layers.append(Layer(i, entry, inputs, shapes))
        index[entry["name"]] = i
        for k in inputs:
            if k >= 0:
                layers[k].readers += 1
    return layers


def heads_of(layers):
    """Indices of the layers that nobody reads: logits of auxiliary heads, then those of the net."""
    return [layer.index for layer in layers if layer.readers == 0]


AUXILIARY_WEIGHT = 0.4  # of an auxiliary head's loss
