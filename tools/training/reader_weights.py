"""Train the answer reader: MiniLM finds the answer to a question in a passage, or detects that there is none.

Each token gets a score for being part of an answer, and each passage a score for having no answer. The loss has two
parts: one within each passage, and one over all passages of a question, where only the tokens of the answer are right.
The word embeddings and the lowest layer are not trained. Training is seeded and needs PyTorch. It is fast only on a
processor that multiplies in bfloat16.
"""

import hashlib
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

import storage.indexes as code
from storage.indexes.answer_reader import MOST_TOKENS, READER_FILE, build_row
from storage.indexes.minilm import TOKENIZER, WEIGHTS, find_model_folder, open_tokenizer
from storage.indexes.minilm_graph import EPSILON, HEADS, LAYER_COUNT, WIDTH, build_reader_model
from storage.types import Span
from tools.training.reader_data import (
    ReaderQuestion,
    ReadPassage,
    crop_passage,
    find_near,
    read_articles,
    read_faq_questions,
    read_heading_questions,
    read_squad_questions,
)

HELD = ("Normans", "Warsaw", "Packet_switching")  # articles on which the first pass is measured
QUESTIONS = 20  # in a step
HEAD_PACE = 10  # the learning rate of the head relative to the rest, because its first weights are random
WARM_UP = 0.06
NEAR_MISS = 0.5  # the weight of a paragraph that only seems to answer: it is hard, and must not dominate the loss
BATCH = 12
LONGEST_TEXT = 100_000


class Reader(nn.Module):
    """The encoder, whose parts are named as in the weights' file, and a head that gives two numbers for each token."""

    def __init__(self, weights: Path) -> None:
        super().__init__()
        tensors = {name: tensor for name, tensor in load_file(weights).items() if tensor.is_floating_point()}
        tensors |= {"head.weight": torch.randn(2, WIDTH) * 0.02, "head.bias": torch.zeros(2)}
        fixed = ("embeddings.", "encoder.layer.0.", "pooler.")
        self.weights = {name: nn.Parameter(tensor, not name.startswith(fixed)) for name, tensor in tensors.items()}

    def learned(self, *, head: bool) -> list[nn.Parameter]:
        named = self.weights.items()
        return [weight for name, weight in named if weight.requires_grad and name.startswith("head.") == head]

    def forward(self, ids: Tensor, kinds: Tensor, seen: Tensor) -> Tensor:
        tables = [self.weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")]
        states = self._normed(tables[0][ids] + tables[1][: ids.shape[1]] + tables[2][kinds], "embeddings.")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for layer in range(LAYER_COUNT):
                states = self._layer(f"encoder.layer.{layer}.", states, seen[:, None, None])
        states = functional.dropout(states.float(), 0.1, self.training)
        return functional.linear(states, self.weights["head.weight"], self.weights["head.bias"])

    def _layer(self, name: str, states: Tensor, seen: Tensor) -> Tensor:
        size = *states.shape[:2], HEADS, WIDTH // HEADS
        parts = [
            self._linear(states, f"{name}attention.self.{part}.").view(size).transpose(1, 2).float()
            for part in ("query", "key", "value")
        ]
        with torch.autocast("cpu", enabled=False):  # attention is slower in 16 bits
            attended = functional.scaled_dot_product_attention(*parts, attn_mask=seen)
        attended = self._linear(attended.transpose(1, 2).reshape(states.shape), f"{name}attention.output.dense.")
        states = self._normed(states + attended, f"{name}attention.output.")
        inner = functional.gelu(self._linear(states, f"{name}intermediate.dense."))
        return self._normed(states + self._linear(inner, f"{name}output.dense."), f"{name}output.")

    def _linear(self, states: Tensor, name: str) -> Tensor:
        return functional.linear(states, self.weights[f"{name}weight"], self.weights[f"{name}bias"])

    def _normed(self, states: Tensor, name: str) -> Tensor:
        norm = [self.weights[f"{name}LayerNorm.{part}"] for part in ("weight", "bias")]
        return functional.layer_norm(states, (WIDTH,), *norm, eps=EPSILON)


@dataclass(frozen=True, slots=True)
class Shown:
    """A part of a passage that is shown to the reader, and which of its tokens answer."""

    row: Sequence[int]
    passage_at: int
    body_at: int
    gold: Sequence[int]
    near_miss: bool = False


def choose_passages(
    question: ReaderQuestion, passages: Sequence[ReadPassage], chance: random.Random
) -> Iterator[Shown]:
    """Choose the passages to show for a question: those with the answer, and some that are only similar."""
    shown = list(question.gold) or question.own[:1] if question.own else []
    others = [
        number
        for number in question.near[:8]
        if number not in question.own and not any(answer in passages[number].text for answer in question.answers)
    ]
    if others and question.gold and chance.random() < 0.5:
        shown = [*shown, chance.choice(others)]
    if others and (question.gold or chance.random() < 0.5):
        shown = [*shown, chance.choice(others[:4] if chance.random() < 0.6 else others)]
    titled = chance.random() < 0.5
    for number in shown:
        gold = question.gold.get(number, frozenset())
        part = crop_passage(passages[number], gold, chance)
        yield show(question, passages[number], part, gold, titled=titled, near_miss=not gold and number in question.own)


def show(
    question: ReaderQuestion,
    passage: ReadPassage,
    part: Span,
    gold: frozenset[int] = frozenset(),
    *,
    titled: bool = True,
    near_miss: bool = False,
) -> Shown:
    opening = build_row(question.ids, passage.title if titled else ())
    body = passage.ids[slice(*part)][: MOST_TOKENS - len(opening) - 1]
    here = [token - part[0] for token in gold if 0 <= token - part[0] < len(body)]
    return Shown([*opening, *body, opening[-1]], len(question.ids) + 2, len(opening), here, near_miss)


def read_shown(reader: Reader, shown: Sequence[Shown]) -> list[Tensor]:
    """Return, for each passage, the score of each token minus the score of having no answer."""
    order, by_place = sorted(range(len(shown)), key=lambda place: len(shown[place].row)), {}
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        ids = nn.utils.rnn.pad_sequence([torch.tensor(shown[place].row) for place in batch], batch_first=True)
        places, sizes = torch.arange(ids.shape[1]), torch.tensor([[len(shown[place].row)] for place in batch])
        seen = places < sizes
        kinds = (places >= torch.tensor([[shown[place].passage_at] for place in batch])) & seen
        for place, scores in zip(batch, reader(ids, kinds.long(), seen), strict=True):
            by_place[place] = scores[shown[place].body_at : len(shown[place].row) - 1, 0] - scores[0, 1]
    return [by_place[place] for place in range(len(shown))]


def measure_loss(shown: Sequence[Shown], scores: Sequence[Tensor]) -> Tensor:
    """Return the loss of one question: the mean over its passages, plus that of choosing among all their tokens."""
    alone, right = [], []
    for example, logits in zip(shown, scores, strict=True):
        whole = torch.logsumexp(torch.cat([torch.zeros(1), logits]), 0)
        if example.gold:
            right.append(logits[example.gold])
            alone.append(whole - torch.logsumexp(right[-1], 0))
        else:
            alone.append(whole * (NEAR_MISS if example.near_miss else 1.0))
    loss = sum(alone) / max(1, len(alone))
    return loss + torch.logsumexp(torch.cat(list(scores)), 0) - torch.logsumexp(torch.cat(right), 0) if right else loss


def train(
    data: Annotated[
        Path, typer.Argument(help="The folder retrieval_qa: half of SQuAD 2's development set, English XQuAD.")
    ],
    dump: Annotated[Path, typer.Argument(help="A Wikipedia dump; its headings become questions.")],
    faqs: Annotated[Path, typer.Argument(help="DSTC 11's knowledge.json: frequent questions about hotels.")],
    steps: Annotated[tuple[int, int], typer.Option(help="Steps of 20 questions in the first and second pass.")] = (
        690,
        660,
    ),
    out: Annotated[Path | None, typer.Option(help="Write the weights here instead of into the code.")] = None,
) -> None:
    """Train the answer reader and write its weights.

    The first pass leaves out three articles and is measured on them. The second pass learns from all articles.

    Example: python -m tools.training.reader_weights data/retrieval_qa enwiki.xml.bz2 knowledge.json
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    chance, folder = random.Random(0), find_model_folder()
    tokenizer = open_tokenizer(folder / TOKENIZER, LONGEST_TEXT)

    def tokenize(text: str) -> Any:
        return tokenizer.encode(text, add_special_tokens=False)

    passages: list[ReadPassage] = []
    articles = read_articles(data / "squad2_dev_half.minus-xquad.json")
    titles = {article["title"] for article in articles}
    articles += [article for article in read_articles(data / "xquad" / "xquad.en.json") if article["title"] in titles]
    questions = list(read_squad_questions(articles, passages, tokenize))
    held_out = [question for question in questions if question.article in HELD]
    learned = [question for question in questions if question.article not in HELD]
    headings = list(read_heading_questions(dump, passages, tokenize, chance))
    frequent = list(read_faq_questions(faqs, passages, tokenize, chance))
    reader = Reader(folder / WEIGHTS)
    for part in (held_out, learned):
        find_near(part, passages)
    learn(reader, [(learned, len(learned)), (headings, 500)], passages, steps[0], chance, pace=1e-4)
    print(evaluate(reader, held_out, passages))
    find_near(questions, passages)
    learn(
        reader, [(questions, len(questions)), (headings, 300), (frequent, 600)], passages, steps[1], chance, pace=7e-5
    )
    path = out or Path(code.__path__[0]) / READER_FILE
    export(reader, path)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}")


def learn(
    reader: Reader,
    sources: Sequence[tuple[Sequence[ReaderQuestion], int]],
    passages: Sequence[ReadPassage],
    steps: int,
    chance: random.Random,
    *,
    pace: float,
) -> None:
    """Train in rounds, with the given number of questions from each source. The learning rate rises, then falls."""
    body, head = reader.learned(head=False), reader.learned(head=True)
    groups = [{"params": body, "lr": pace}, {"params": head, "lr": HEAD_PACE * pace}]
    descent = torch.optim.AdamW(groups, weight_decay=0.01, betas=(0.9, 0.98))
    slope = torch.optim.lr_scheduler.LambdaLR(
        descent, lambda step: min(1.0, (step + 1) / steps / WARM_UP) * max(0.02, 1 - step / steps)
    )
    rest: list[ReaderQuestion] = []
    for _ in range(steps):
        if len(rest) < QUESTIONS:
            rest = [example for pool, count in sources for example in chance.sample(pool, min(count, len(pool)))]
            chance.shuffle(rest)
        batch, rest = rest[:QUESTIONS], rest[QUESTIONS:]
        shown = [list(choose_passages(question, passages, chance)) for question in batch]
        scores = iter(read_shown(reader, [example for group in shown for example in group]))
        losses = [measure_loss(group, [next(scores) for _ in group]) for group in shown if group]
        torch.stack(losses).mean().backward()
        nn.utils.clip_grad_norm_([*body, *head], 1.0)
        descent.step()
        slope.step()
        descent.zero_grad()


@torch.no_grad()
def evaluate(reader: Reader, questions: Sequence[ReaderQuestion], passages: Sequence[ReadPassage]) -> dict[str, float]:
    """Measure a reader on articles that it was not trained on.

    Return the share of questions for which the best sentence of the first three passages by BM25 has the answer, and
    the share of near misses that are detected at 10% false abstentions.
    """
    reader.eval()
    first, known, missed = [], [], []
    for question in questions:
        numbers = list(question.near[:3]) if question.gold else list(question.own)
        whole = [show(question, passages[number], (0, len(passages[number].ids))) for number in numbers]
        ranked = [
            (float(torch.logsumexp(scores[inside], 0)), number, sentence)
            for number, scores in zip(numbers, read_shown(reader, whole), strict=True)
            for sentence in passages[number].sentences
            if (inside := _find_inside(passages[number], sentence, len(scores)))
        ]
        best, number, span = max(ranked)
        if question.gold:
            sentence = passages[number].text[slice(*span)]
            first.append(number in question.own and any(answer in sentence for answer in question.answers))
            known.append(best)
        else:
            missed.append(best)
    reader.train()
    caught = float(np.mean(np.array(missed) < np.quantile(known, 0.1)))
    return {"right first": float(np.mean(first)), "near misses caught at 10%": caught}


def _find_inside(passage: ReadPassage, sentence: Span, size: int) -> list[int]:
    spans = passage.offsets[:size]
    return [place for place, (start, end) in enumerate(spans) if start < sentence[1] and end > sentence[0]]


def export(reader: Reader, path: Path) -> None:
    """Write the reader as ONNX with eight-bit weights."""
    with tempfile.TemporaryDirectory() as work:
        weights = Path(work) / "reader.safetensors"
        save_file({name: weight.detach().contiguous() for name, weight in reader.weights.items()}, weights)
        path.write_bytes(_quantize(build_reader_model(weights), Path(work), Path(work)))


def _quantize(model: Any, folder: Path, work: Path) -> bytes:
    """Return a model with eight-bit weights, scaled for each row. `folder` contains the weights that it refers to."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    onnx.external_data_helper.load_external_data_for_model(model, str(folder))
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            tensor.data_location = onnx.TensorProto.DEFAULT
            del tensor.external_data[:]
    onnx.save(model, work / "float32.onnx")
    quantize_dynamic(work / "float32.onnx", work / "int8.onnx", weight_type=QuantType.QInt8, per_channel=True)
    return (work / "int8.onnx").read_bytes()


if __name__ == "__main__":
    typer.run(train)
