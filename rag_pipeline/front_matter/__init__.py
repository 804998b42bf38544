"""Front matter of a text (YAML between `---`, TOML between `+++`): absent, read, or broken.

Documents take it out of Markdown, drops take identity, scope and title from it; what the values mean is theirs to say.
`read` finds it, `parse` reads its values, `attempts` tells what was meant as front matter from a text that merely
begins with a rule, and `keys` knows the keys of drops and what looks like one of them.
"""

from __future__ import annotations

from rag_pipeline.front_matter.read import Broken, FrontMatter, nested_scope, read_front_matter

__all__ = ["Broken", "FrontMatter", "nested_scope", "read_front_matter"]
