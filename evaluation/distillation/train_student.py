"""Train a causal language model on exported lessons, with LoRA: `python -m evaluation.distillation.train_student`.

This is a separate script for a machine with an accelerator. It imports nothing from Footnote, so that it can be copied
alone. It needs the packages in requirements/distil.lock (`make distil`). Semnani et al. (2023, section 4) fine-tune all
weights of a LLaMA with 7 billion parameters; LoRA (Hu et al. 2021) changes a thousandth of them. Only the tokens of the
replies have a loss.
"""

import argparse
import hashlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

try:
    import torch
    import transformers
    from gguf import MODEL_ARCH, GGUFWriter, get_tensor_name_map
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer, DataCollatorForSeq2Seq, GgufConfig, Trainer
    from transformers.trainer_utils import get_last_checkpoint
except ImportError as error:
    raise SystemExit(f"{error}: run `make distil`, then this with .venv-distil/bin/python.") from error

IGNORED = -100  # the label of tokens without a loss


def main() -> None:
    options = parse_options(sys.argv[1:])
    transformers.set_seed(options.seed)
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    lessons = {split: read_lessons(options.lessons / f"{split}.jsonl") for split in ("train", "validation")}
    if not lessons["train"]:
        raise SystemExit(f"{options.lessons} has no lessons for training: export more turns, or use another --seed.")
    model, tokenizer = open_model(options)
    encoded = {split: encode_lessons(part, tokenizer, options.length) for split, part in lessons.items()}
    left_out = {split: len(part) - len(encoded[split]) for split, part in lessons.items()}
    if not encoded["train"]:
        raise SystemExit(f"No lesson fits into --length {options.length} tokens.")
    adapted = get_peft_model(model, build_lora(options))
    trainer = build_trainer(adapted, tokenizer, encoded, options)
    began = time.perf_counter()
    trainer.train(resume_from_checkpoint=options.resume)
    seconds = time.perf_counter() - began
    report = describe_run(trainer, options, encoded, left_out, seconds)
    save_student(trainer, tokenizer, options)
    (options.out / "training.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({name: report[name] for name in ("loss", "seconds", "tokens_per_second", "memory_mb")}))


def parse_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("lessons", type=Path, help="the folder that `footnote distil export` wrote")
    parser.add_argument("--model", required=True, help="a causal model: its name, folder, or GGUF file")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write the adapter to")
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--steps", type=int, default=-1, help="the number of steps, instead of epochs")
    parser.add_argument("--bf16", action="store_true", help="16 bits on a processor too, if it is quick at them")
    parser.add_argument("--batch", type=int, default=4, help="lessons in a batch")
    parser.add_argument("--accumulate", type=int, default=8, help="batches in a step")
    parser.add_argument("--length", type=int, default=4_096, help="most tokens; longer lessons are left out, not cut")
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="continue from the last checkpoint in --out")
    parser.add_argument("--merge", action="store_true", help="also write the model with the adapter merged into it")
    options = parser.parse_args(arguments)
    checkpoint = get_last_checkpoint(options.out) if options.resume and options.out.is_dir() else None
    if options.resume and not checkpoint:
        raise SystemExit(f"{options.out} has no checkpoint: train without --resume.")
    options.resume = checkpoint
    options.bf16 |= torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    return options


def read_lessons(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        raise SystemExit(f"There is no {path}: export lessons with `footnote distil export FOLDER`.")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def open_model(options: argparse.Namespace) -> tuple[Any, Any]:
    file = Path(options.model)
    name, source = (file.parent, {"gguf_file": file.name}) if file.suffix == ".gguf" else (options.model, {})
    if source and not file.exists():
        raise SystemExit(f"There is no {file}: name a model, its folder or its GGUF file with --model.")
    tokenizer = AutoTokenizer.from_pretrained(name, **source)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    if source:  # by default, weights may stay in blocks, which cannot be trained
        source["quantization_config"] = GgufConfig(dequantize=True)
    precision = torch.bfloat16 if options.bf16 else torch.float32
    return AutoModelForCausalLM.from_pretrained(name, dtype=precision, **source), tokenizer


def encode_lessons(lessons: list[dict[str, Any]], tokenizer: Any, length: int) -> list[dict[str, list[int]]]:
    """Encode lessons; only their replies have a loss. A lesson of more than `length` tokens is left out."""
    encoded = (encode_lesson(lesson["messages"], tokenizer) for lesson in lessons)
    return [lesson_tokens for lesson_tokens in encoded if len(lesson_tokens["input_ids"]) <= length]


def encode_lesson(messages: list[dict[str, str]], tokenizer: Any) -> dict[str, list[int]]:
    prompt = apply_template(messages[:-1], tokenizer, prompt=True)
    whole = apply_template(messages, tokenizer, prompt=False)
    if whole[: len(prompt)] != prompt:
        raise SystemExit("The chat template of this model writes a prompt differently if its reply follows.")
    labels = [IGNORED] * len(prompt) + whole[len(prompt) :]
    return {"input_ids": whole, "attention_mask": [1] * len(whole), "labels": labels}


def apply_template(messages: list[dict[str, str]], tokenizer: Any, *, prompt: bool) -> list[int]:
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt)
    except Exception:  # noqa: BLE001 - templates without a system role may raise any exception
        system, first, *others = messages
        joined = {"role": "user", "content": f"{system['content']}\n\n{first['content']}"}
        text = tokenizer.apply_chat_template([joined, *others], tokenize=False, add_generation_prompt=prompt)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def build_lora(options: argparse.Namespace) -> LoraConfig:
    fixed = {"task_type": "CAUSAL_LM", "lora_dropout": 0.05, "target_modules": "all-linear"}
    return LoraConfig(r=options.rank, lora_alpha=2 * options.rank, **fixed)


def build_trainer(model: Any, tokenizer: Any, encoded: dict[str, Any], options: argparse.Namespace) -> Trainer:
    arguments = transformers.TrainingArguments(
        output_dir=str(options.out),
        num_train_epochs=options.epochs,
        max_steps=options.steps,
        per_device_train_batch_size=options.batch,
        per_device_eval_batch_size=options.batch,
        gradient_accumulation_steps=options.accumulate,
        learning_rate=options.rate,
        lr_scheduler_type="cosine",
        warmup_steps=0.03,
        bf16=options.bf16,
        use_cpu=options.bf16 and not torch.cuda.is_available(),  # transformers expects 16 bits on accelerators only
        activation_checkpointing=torch.cuda.is_available(),
        eval_strategy="epoch" if encoded["validation"] else "no",
        save_strategy="epoch" if options.steps < 0 else "steps",
        save_steps=max(1, options.steps // 4),
        save_total_limit=2,
        logging_steps=5,
        seed=options.seed,
        report_to=[],
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    return Trainer(
        model=model,
        args=arguments,
        train_dataset=encoded["train"],
        eval_dataset=encoded["validation"] or None,
        data_collator=DataCollatorForSeq2Seq(tokenizer, label_pad_token_id=IGNORED),
    )


def save_student(trainer: Trainer, tokenizer: Any, options: argparse.Namespace) -> None:
    trainer.model.save_pretrained(options.out / "adapter")
    tokenizer.save_pretrained(options.out / "adapter")
    if trainer.model.config.model_type == "llama":
        write_gguf(trainer.model, options)
    if options.merge:
        trainer.model.merge_and_unload().save_pretrained(options.out / "merged")
        tokenizer.save_pretrained(options.out / "merged")


def write_gguf(model: Any, options: argparse.Namespace) -> None:
    """Write the adapter for llama.cpp, as its convert_lora_to_gguf.py does for a LLaMA."""
    config = model.config
    names = get_tensor_name_map(MODEL_ARCH.LLAMA, config.num_hidden_layers)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    writer = GGUFWriter(options.out / "adapter.gguf", "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 2 * options.rank)
    for name, weights in model.state_dict().items():
        layer, lora, part = name.removeprefix("base_model.model.").partition(".lora_")  # "A" reads, "B" writes
        if not lora:
            continue
        rows = weights.float().cpu().numpy()
        if part[0] == "B" and (count := heads.get(layer.rpartition(".")[2])):  # llama.cpp pairs neighbours in RoPE
            rows = rows.reshape(count, 2, -1, options.rank).swapaxes(1, 2).reshape(rows.shape)
        writer.add_tensor(f"{names.get_name(layer)}.weight.lora_{part[0].lower()}", rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def describe_run(
    trainer: Trainer, options: argparse.Namespace, encoded: dict[str, Any], left_out: dict[str, int], seconds: float
) -> dict[str, Any]:
    """Describe a training run: its inputs, losses, speed and memory."""
    history = trainer.state.log_history
    mean = sum(len(entry["input_ids"]) for entry in encoded["train"]) / len(encoded["train"])
    earlier = int(options.resume.rpartition("-")[2]) if options.resume else 0  # steps before `seconds`
    tokens = mean * (trainer.state.global_step - earlier) * options.batch * options.accumulate
    cuda = torch.cuda.is_available()
    peak = torch.cuda.max_memory_allocated() / 1e6 if cuda else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return {
        "model": options.model,
        "device": torch.cuda.get_device_name() if cuda else "processor",
        "parameters": sum(entry.numel() for entry in trainer.model.parameters()),
        "trained": sum(parameter.numel() for parameter in trainer.model.parameters() if parameter.requires_grad),
        "options": {name: str(value) for name, value in vars(options).items()},
        "lessons": {split: len(part) for split, part in encoded.items()},
        "left_out_as_too_long": left_out,
        "sha256": {
            split: hashlib.sha256((options.lessons / f"{split}.jsonl").read_bytes()).hexdigest() for split in encoded
        },
        "steps": trainer.state.global_step,
        "loss": [round(entry["loss"], 4) for entry in history if "loss" in entry],
        "validation_loss": [round(entry["eval_loss"], 4) for entry in history if "eval_loss" in entry],
        "seconds": round(seconds, 1),
        "tokens_per_second": round(tokens / seconds),
        "memory_mb": round(peak),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    }


if __name__ == "__main__":
    main()
