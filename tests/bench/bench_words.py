"""Pumice's net crnn (src/nets/crnn.c) as PyTorch modules for the side-by-side benchmark, with both
ways to write a text: CTC and attention. They are written as PyTorch's users write them: nn.LSTM and
F.ctc_loss; a loop over nn.LSTMCell with Bahdanau's attention and teacher forcing. Layers, shapes
and trained parameters are Pumice's.

t columns of the picture are the steps of the sequence, C numbers each; S symbols of a text."""
import torch
from torch import nn
from torch.nn import functional as F

from bench_nets import norm

LETTERS = 36
MOST_LETTERS = 8  # of a random word
START, END, FIRST_LETTER = 0, 1, 2  # symbols of a text with attention


def words(batch):
    """Random words of 1 to 8 letters: letters [n, 8] and lengths [n]."""
    letters = torch.randint(LETTERS, (batch, MOST_LETTERS))
    return letters, torch.randint(1, MOST_LETTERS + 1, (batch,))


def one_bias(recurrent):
    """Freezes the second bias, which Pumice's layers do not have."""
    for name, value in recurrent.named_parameters():
        if name.startswith("bias_hh"):
            nn.init.zeros_(value).requires_grad_(False)
    return recurrent


class Recurrent(nn.Module):
    """A bidirectional layer, and a dense one if `dense`: [t, n, C] -> [t, n, 512 or 256]."""

    units = 256

    def __init__(self, channels, dense):
        super().__init__()
        self.lstm = one_bias(nn.LSTM(channels, self.units, bidirectional=True))
        self.dense = nn.Linear(2 * self.units, self.units) if dense else None

    def forward(self, x):
        y = self.lstm(x)[0]
        return y if self.dense is None else F.relu(self.dense(y))


class Crnn(nn.Module):
    """From pictures [n, 3, 32, w] to a sequence [w / 4, n, C]. dense: after the last recurrent
    layer, too."""

    def __init__(self, dense):
        super().__init__()
        self.convs = nn.Sequential(
            *self.conv(3, 64), nn.MaxPool2d(2), *self.conv(64, 128), nn.MaxPool2d(2),
            *self.conv(128, 256), *self.conv(256, 256), *self.pool(),
            *self.conv(256, 512), *self.conv(512, 512), *self.pool(),
            nn.Conv2d(512, 512, (2, 1), bias=False), *norm(512, 1e-3, 0.01, nn.ReLU(inplace=True)))
        self.first, self.second = Recurrent(512, True), Recurrent(256, dense)

    @staticmethod
    def conv(cin, cout):
        return [nn.Conv2d(cin, cout, 3, 1, 1, bias=False),
                *norm(cout, 1e-3, 0.01, nn.ReLU(inplace=True))]

    @staticmethod
    def pool():
        """Halves the height and keeps the width, which TensorFlow pads at the right."""
        return [nn.ZeroPad2d((0, 1, 0, 0)), nn.MaxPool2d(2, (2, 1))]

    def forward(self, images):
        return self.second(self.first(self.convs(images).squeeze(2).permute(2, 0, 1)))


class CrnnCtc(nn.Module):
    """forward() returns the logits [t, n, classes]; the last class is the blank."""

    def __init__(self, classes):
        super().__init__()
        self.sequence, self.logits = Crnn(False), nn.Linear(2 * Recurrent.units, classes)

    def forward(self, images):
        return self.logits(self.sequence(images))

    @staticmethod
    def truths(batch):
        return words(batch)

    @staticmethod
    def loss(logits, letters, lengths):
        steps, batch, classes = logits.shape
        loss = F.ctc_loss(logits.log_softmax(2), letters, torch.full((batch,), steps), lengths,
                          blank=classes - 1, reduction="none", zero_infinity=True)
        return loss.mean()


class CrnnAttention(nn.Module):
    """forward() returns the sequence. The decoder reads the labels, so it is part of loss()."""

    units, attention, steps = 128, 128, 30

    def __init__(self, classes):
        super().__init__()
        width = Recurrent.units
        self.classes = classes
        self.sequence = Crnn(True)
        self.keys = nn.Linear(width, self.attention, bias=False)
        self.query = nn.Linear(self.units, self.attention, bias=False)
        self.v = nn.Linear(self.attention, 1, bias=False)
        self.cell = one_bias(nn.LSTMCell(classes + width, self.units))
        self.dense = nn.Linear(self.units, classes)

    def forward(self, images):
        return self.sequence(images).transpose(0, 1)

    def truths(self, batch):
        """Labels [n, S]: the letters, the end, then -1."""
        letters, lengths = words(batch)
        labels = torch.full((batch, self.steps), -1)
        labels[:, :MOST_LETTERS] = FIRST_LETTER + letters
        places = torch.arange(self.steps)
        labels[places > lengths[:, None]] = -1
        labels[places == lengths[:, None]] = END
        return (labels,)

    def decode(self, memory, labels):
        """Logits [n, S, classes]."""
        read = F.pad(labels[:, :-1].clamp(min=0), (1, 0), value=START)
        read = F.one_hot(read, self.classes).to(memory.dtype)
        keys = self.keys(memory)
        h = c = memory.new_zeros(len(memory), self.units)
        states = []
        for step in range(self.steps):
            scores = self.v(torch.tanh(keys + self.query(h)[:, None])).squeeze(2)
            context = torch.bmm(scores.softmax(1)[:, None], memory).squeeze(1)
            h, c = self.cell(torch.cat([read[:, step], context], 1), (h, c))
            states.append(h)
        return self.dense(torch.stack(states, 1))

    def loss(self, memory, labels):
        logits = self.decode(memory, labels)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-1,
                               reduction="sum") / len(labels)
