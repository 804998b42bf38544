"""What the nodes of each grammar are, as data: which hold statements or members, and which define what.

The words are the node types of the tree-sitter grammars; `node-types.json` of each grammar lists them. A type that is
not named here is an expression, or by its ending a clause, a string or a comment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rag_pipeline.chunking.code import names
from rag_pipeline.chunking.code.mending import Mender, mended_python
from rag_pipeline.chunking.code.names import Namer


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _named(words: str, namer: Namer) -> dict[str, Namer]:
    return dict.fromkeys(words.split(), namer)


def _restarts(definition: bytes) -> re.Pattern[bytes]:
    """A definition at the left margin after a blank line, with the comments and decorators above it."""
    return re.compile(rb"(?<=\n\n)(?:(?:[@#*]|//|/\*| \*).*\n|\n){0,80}(?:" + definition + rb")")


@dataclass(frozen=True, slots=True, kw_only=True)
class Syntax:
    """Where a grammar is, and what its node types are; see `grammars.Role` for the meaning of each set."""

    module: str
    bodies: frozenset[str]
    definitions: Mapping[str, Namer]
    factory: str = "language"
    entries: Mapping[str, Namer] = field(default_factory=dict)
    scopes: Mapping[str, Namer] = field(default_factory=dict)
    clauses: frozenset[str] = frozenset()
    wrappers: frozenset[str] = frozenset()
    splices: frozenset[str] = frozenset()
    leads: frozenset[str] = frozenset()
    tokens: frozenset[str] = frozenset()
    is_data: bool = False
    too_deep: re.Pattern[bytes] | None = None
    restarts: re.Pattern[bytes] | None = None
    mended: Mender | None = None


_PYTHON: Final = Syntax(
    module="tree_sitter_python",
    bodies=_set("module block"),
    definitions=_named("function_definition class_definition", names.by_name),
    wrappers=_set("decorated_definition"),
    restarts=_restarts(rb"(?:async[ ]+)?def[ ]|class[ ]"),
    mended=mended_python,
)


def _javascript(module: str, factory: str = "language") -> Syntax:
    return Syntax(
        module=module,
        factory=factory,
        bodies=_set("program statement_block class_body switch_body interface_body enum_body"),
        definitions=_named(
            "function_declaration generator_function_declaration class_declaration abstract_class_declaration"
            " interface_declaration enum_declaration type_alias_declaration method_definition function_signature"
            " internal_module module",
            names.by_name,
        )
        | _named("lexical_declaration variable_declaration", names.by_variable)
        | _named("expression_statement", names.by_expression),
        entries=_named("field_definition public_field_definition", names.by_variable)
        | _named("pair", names.by_function_key)
        | _named("method_signature abstract_method_signature", names.by_name),
        clauses=_set("variable_declarator arrow_function function_expression generator_function switch_default class"),
        wrappers=_set("export_statement ambient_declaration"),
        leads=_set("decorator"),
    )


_GO: Final = Syntax(
    module="tree_sitter_go",
    bodies=_set(
        "source_file block statement_list field_declaration_list import_spec_list var_spec_list"
        " const_declaration interface_type"
    ),
    definitions=_named("function_declaration", names.by_name)
    | _named("method_declaration", names.by_receiver)
    | _named("type_declaration", names.by_only_spec),
    entries=_named("type_spec type_alias", names.by_name),
    clauses=_set("struct_type var_declaration import_declaration communication_case default_case type_case"),
)

_RUST: Final = Syntax(
    module="tree_sitter_rust",
    bodies=_set("source_file block declaration_list field_declaration_list enum_variant_list match_block"),
    definitions=_named(
        "function_item struct_item enum_item union_item trait_item mod_item macro_definition", names.by_name
    )
    | _named("impl_item", names.by_implemented),
    entries=_named("function_signature_item type_item const_item static_item", names.by_name),
    clauses=_set(
        "if_expression match_expression for_expression while_expression loop_expression unsafe_block async_block"
        " let_declaration foreign_mod_item"
    ),
    leads=_set("attribute_item"),
)

_JAVA: Final = Syntax(
    module="tree_sitter_java",
    bodies=_set(
        "program class_body interface_body enum_body enum_body_declarations annotation_type_body block"
        " constructor_body switch_block module_body"
    ),
    definitions=_named(
        "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration"
        " method_declaration constructor_declaration compact_constructor_declaration module_declaration",
        names.by_name,
    ),
    entries=_named("enum_constant annotation_type_element_declaration", names.by_name),
    clauses=_set("switch_expression switch_block_statement_group static_initializer"),
)

_KOTLIN: Final = Syntax(
    module="tree_sitter_kotlin",
    bodies=_set("source_file class_body enum_class_body block"),
    definitions=_named("class_declaration object_declaration", names.by_name)
    | _named("function_declaration", names.by_extended)
    | _named("companion_object", names.by_name_or_kind)
    | _named("anonymous_initializer", names.as_initializer)
    | _named("secondary_constructor", names.as_constructor),
    entries=_named("enum_entry type_alias", names.by_key),
    clauses=_set(
        "function_body if_expression when_expression when_entry try_expression catch_block finally_block"
        " getter setter property_declaration"
    ),
)

_C_BODIES = "translation_unit compound_statement field_declaration_list enumerator_list declaration_list"
_C_SPLICES = _set("preproc_if preproc_ifdef preproc_else preproc_elif preproc_elifdef linkage_specification")
_C_TYPES = "struct_specifier union_specifier enum_specifier"

_C: Final = Syntax(
    module="tree_sitter_c",
    bodies=_set(_C_BODIES),
    definitions=_named("function_definition type_definition", names.by_declarator)
    | _named(_C_TYPES, names.by_body_and_name)
    | _named("preproc_function_def", names.by_name),
    splices=_C_SPLICES,
)

_CPP: Final = Syntax(
    module="tree_sitter_cpp",
    bodies=_set(_C_BODIES),
    definitions=_named("function_definition type_definition", names.by_declarator)
    | _named(_C_TYPES + " class_specifier", names.by_body_and_name)
    | _named("namespace_definition concept_definition alias_declaration", names.by_scoped_name)
    | _named("preproc_function_def", names.by_name),
    clauses=_set("for_range_loop"),
    wrappers=_set("template_declaration"),
    splices=_C_SPLICES,
    leads=_set("access_specifier"),
)

_CSHARP: Final = Syntax(
    module="tree_sitter_c_sharp",
    bodies=_set("compilation_unit declaration_list block enum_member_declaration_list accessor_list switch_body"),
    definitions=_named(
        "class_declaration struct_declaration interface_declaration enum_declaration record_declaration"
        " method_declaration constructor_declaration destructor_declaration delegate_declaration"
        " namespace_declaration local_function_statement",
        names.by_name,
    )
    | _named("operator_declaration conversion_operator_declaration indexer_declaration", names.by_kind),
    entries=_named("property_declaration enum_member_declaration event_declaration", names.by_name),
    scopes=_named("file_scoped_namespace_declaration", names.by_name),
    splices=_set("preproc_if preproc_else preproc_elif"),
)

_RUBY: Final = Syntax(
    module="tree_sitter_ruby",
    bodies=_set("program body_statement block_body then do"),
    definitions=_named("class module", names.by_scoped_name)
    | _named("method singleton_method", names.by_name)
    | _named("singleton_class", names.by_kind),
    entries=_named("call", names.by_test_name),
    clauses=_set(
        "if unless elsif else case when case_match in_clause while until for begin rescue ensure do_block block"
    ),
)

_PHP: Final = Syntax(
    module="tree_sitter_php",
    factory="language_php",
    bodies=_set(
        "program declaration_list compound_statement switch_block enum_declaration_list colon_block match_block"
    ),
    definitions=_named(
        "class_declaration interface_declaration trait_declaration enum_declaration function_definition"
        " method_declaration",
        names.by_name,
    ),
    entries=_named("enum_case", names.by_name),
    scopes=_named("namespace_definition", names.by_name),
    clauses=_set("match_expression"),
)

_SWIFT: Final = Syntax(
    module="tree_sitter_swift",
    bodies=_set("source_file class_body enum_class_body protocol_body function_body statements"),
    definitions=_named(
        "class_declaration protocol_declaration function_declaration protocol_function_declaration"
        " typealias_declaration macro_declaration",
        names.by_name,
    )
    | _named("init_declaration deinit_declaration subscript_declaration", names.by_kind),
    entries=_named("property_declaration", names.by_pattern) | _named("enum_entry", names.by_name),
    clauses=_set("computed_property computed_getter computed_setter switch_entry catch_block lambda_literal"),
)

_SCALA: Final = Syntax(
    module="tree_sitter_scala",
    bodies=_set(
        "compilation_unit template_body block indented_block with_template_body enum_body case_block indented_cases"
    ),
    definitions=_named(
        "class_definition object_definition trait_definition enum_definition function_definition"
        " function_declaration given_definition package_object type_definition",
        names.by_name,
    )
    | _named("extension_definition", names.by_kind),
    entries=_named("full_enum_case simple_enum_case", names.by_name),
    clauses=_set(
        "if_expression match_expression for_expression try_expression while_expression case_clause"
        " val_definition var_definition"
    ),
    leads=_set("annotation"),
)

_BASH: Final = Syntax(
    module="tree_sitter_bash",
    bodies=_set("program compound_statement do_group subshell"),
    definitions=_named("function_definition", names.by_name),
    clauses=_set("case_item list pipeline"),
)

_SQL_CREATED = (
    "table view materialized_view function procedure trigger index type schema sequence extension policy role"
)

_SQL: Final = Syntax(
    module="tree_sitter_sql",
    bodies=_set("program column_definitions transaction"),
    definitions=_named(" ".join(f"create_{thing}" for thing in _SQL_CREATED.split()), names.by_reference),
    entries=_named("alter_table insert", names.by_reference),
    clauses=_set("create_query select from where cte subquery set_operation function_body block"),
    wrappers=_set("statement"),
)

_HCL: Final = Syntax(
    module="tree_sitter_hcl",
    bodies=_set("config_file body object tuple"),
    definitions=_named("block", names.by_labels),
    entries=_named("attribute object_elem", names.by_key),
    clauses=_set("expression collection_value literal_value"),
    tokens=_set("block_start block_end object_start object_end tuple_start tuple_end"),
    restarts=_restarts(rb"[a-z_]+[ ](?:\"[^\"\n]*\"[ ]){0,2}\{"),
)

_YAML: Final = Syntax(
    module="tree_sitter_yaml",
    is_data=True,
    bodies=_set("stream block_node block_mapping block_sequence flow_node flow_mapping flow_sequence"),
    definitions={},
    entries=_named("block_mapping_pair flow_pair", names.by_key),
    clauses=_set("document block_sequence_item"),
    # Its scanner writes past the end of a buffer for 250 levels, and the process dies.
    too_deep=re.compile(rb"^(?:[-?:]?[ \t]){100}", re.MULTILINE),
)

_TOML: Final = Syntax(
    module="tree_sitter_toml",
    is_data=True,
    bodies=_set("document array inline_table"),
    definitions=_named("table table_array_element", names.by_key),
    entries=_named("pair", names.by_key),
)

_JSON: Final = Syntax(
    module="tree_sitter_json",
    is_data=True,
    bodies=_set("document object array"),
    definitions={},
    entries=_named("pair", names.by_key),
)

LANGUAGES: Final[Mapping[str, Syntax]] = {
    "python": _PYTHON,
    "starlark": _PYTHON,
    "javascript": _javascript("tree_sitter_javascript"),
    "typescript": _javascript("tree_sitter_typescript", "language_typescript"),
    "tsx": _javascript("tree_sitter_typescript", "language_tsx"),
    "go": _GO,
    "rust": _RUST,
    "java": _JAVA,
    "kotlin": _KOTLIN,
    "c": _C,
    "cpp": _CPP,
    "cuda": _CPP,
    "csharp": _CSHARP,
    "ruby": _RUBY,
    "php": _PHP,
    "swift": _SWIFT,
    "scala": _SCALA,
    "bash": _BASH,
    "sql": _SQL,
    "terraform": _HCL,
    "hcl": _HCL,
    "yaml": _YAML,
    "toml": _TOML,
    "json": _JSON,
}
"""By the names that cleaning gives to languages."""
