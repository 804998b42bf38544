"""An emulated GitHub for tests: a model that tests mutate, served over a real socket.

model       `Forge`, all operations (`world` the clock and ids, `conversation` what is said, `nouns` the records)
server      `GitHubServer`; `access` credentials, `quota` the rate limit, `limits` (`paging`), `faults` what goes wrong
shapes      the JSON, with `pull_shapes`; `routes` and `listings` say which address gives which, `wire` is HTTP
webhooks    what GitHub would send about a change
generated   repositories from a seed, with `texts`; `changes` one random change at a time
archive     a real project's history, where `RAG_TEST_DATA` has it
"""
