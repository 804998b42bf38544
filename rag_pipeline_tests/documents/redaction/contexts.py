"""Where secrets stand in documents and code: what surrounds a value."""

from __future__ import annotations

ANYWHERE: dict[str, str] = {
    "prose": "We used {} while the old one was revoked.",
    "sentence end": "The value is {}.",
    "parentheses": "Use the shared one ({}) for staging.",
    "backticks": "Set it to `{}` and restart.",
    "table": "| name | value |\n|---|---|\n| staging | {} |\n",
    "yaml": "services:\n  api:\n    value: {}\n",
    "yaml quoted": 'value: "{}"\n',
    "json": '{{"value": "{}", "other": 1}}',
    "python": 'client = Client("{}")\n',
    "env": "VALUE={}\n",
    "export": "export VALUE='{}'\n",
    "comment": "// old: {}\n",
    "html": "<code>{}</code>",
    "url": "https://api.corp.io/v1/{}/items",
    "list": "- {}\n- another\n",
}
"""For formats that say by themselves what they are; some hold what a URL's path cannot."""

NAMED: dict[str, str] = {
    "env": "{name}={value}\n",
    "export": 'export {name}="{value}"\n',
    "yaml": "{name}: {value}\n",
    "yaml quoted": "  {name}: '{value}'\n",
    "json": '{{"{name}": "{value}"}}',
    "python": '{name} = "{value}"\n',
    "keyword argument": 'client = Client({name}="{value}", timeout=3)\n',
    "dictionary": 'config["{name}"] = "{value}"\n',
    "ini": "{name} = {value}\n",
    "table": "| {name} | {value} |\n",
    "table with code": "| `{name}` | `{value}` |\n",
    "markdown list": "- `{name}`: `{value}`\n",
    "bold": "**{name}**: {value}\n",
    "shell": "{name}={value} ./run.sh\n",
    "comment": "# {name}={value}\n",
    "typescript": "const {name}: string = '{value}';\n",
    "go": '{name} := "{value}"\n',
    "ruby": "{name} => '{value}',\n",
    "prose": "Set {name} to `{value}` before you start.",
    "folded": "{name}: >-\n  {value}\n",
}
