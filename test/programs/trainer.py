"""transformers' Trainer, with a tiny BERT and texts of all lengths."""

import os
import tempfile

import torch


def run(device: str, steps: int) -> list[float]:
    os.environ["ACCELERATE_TORCH_DEVICE"] = device
    import transformers

    torch.manual_seed(0)
    texts = [torch.randint(5, 60, (int(n),)).tolist() for n in torch.randint(4, 24, (4 * steps,))]
    rows = [{"input_ids": text, "labels": sum(text) % 2} for text in texts]

    def padded(batch: list[dict]) -> dict[str, torch.Tensor]:
        length = max(len(row["input_ids"]) for row in batch)
        ids = [row["input_ids"] + [0] * (length - len(row["input_ids"])) for row in batch]
        ids = torch.tensor(ids)
        labels = torch.tensor([row["labels"] for row in batch])
        return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}

    config = transformers.BertConfig(
        vocab_size=60,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder,
            per_device_train_batch_size=4,
            num_train_epochs=1,
            logging_steps=1,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
        )
        trainer = transformers.Trainer(
            transformers.BertForSequenceClassification(config),
            arguments,
            train_dataset=rows,
            data_collator=padded,
        )
        trainer.train()
    return [row["loss"] for row in trainer.state.log_history if "loss" in row]
