"""The examples of the OpenAPI documents: a server's answers, as the schemas say; and each operation has some."""

import re
import sys

import jsonschema
import pytest

from croupier import ROOT, api_document

sys.path.insert(0, str(ROOT / "tools"))
import make_examples  # noqa: E402

pytestmark = pytest.mark.only("embedded", "sqlite")  # what they are taken from

VERBS = ("get", "post", "put", "patch", "delete")


def followed(document, node):
    while "$ref" in node:
        target = document
        for part in node["$ref"][2:].split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        node = target
    return node


def media_types(document):
    """(where, a media type) of every request and answer."""
    for kind in ("paths", "webhooks"):
        for path, item in document.get(kind, {}).items():
            for verb in set(VERBS) & set(item):
                bodies = {"request": item[verb].get("requestBody", {}), **item[verb]["responses"]}
                for status, body in bodies.items():
                    for content in followed(document, body).get("content", {}).values():
                        yield f"{item[verb]['operationId']} {status}", content
    for name, response in document["components"].get("responses", {}).items():
        for content in response.get("content", {}).values():
            yield name, content


def test_the_examples_are_what_a_server_answers(tmp_path):
    for document, examples in make_examples.take(tmp_path).items():
        kept = make_examples.examples_of(document)
        assert set(examples) == set(kept), f"{document}.yaml: run tools/make_examples.py"
        for name, value in examples.items():
            assert make_examples.same(name, kept[name], value), f"{document}.yaml, {name}: it is {value}; run tools/make_examples.py"


def test_what_matters_of_an_example_is_compared():
    answer = {"player_id": "ply_1", "balance_minor": 100, "created_at": "2026-01-01T00:00:00.000Z", "status": "applied"}
    assert make_examples.same("debit", answer, {**answer, "player_id": "ply_2", "created_at": "2027-01-01T00:00:00.000Z"})
    for other in ({**answer, "balance_minor": 101}, {**answer, "status": "voided"}, {**answer, "more": 1}, {**answer, "player_id": 7}):
        assert not make_examples.same("debit", answer, other)
    assert make_examples.same("getOverview", {"x": [1, 2]}, {"x": [3]}) and not make_examples.same("getOverview", {"x": [1]}, {"x": ["1"]})


@pytest.mark.parametrize("name", make_examples.DOCUMENTS)
def test_every_request_and_answer_has_examples_that_its_schema_takes(name):
    document = api_document(name)
    used = set()
    for where, content in media_types(document):
        assert content.get("examples"), f"{name}.yaml, {where}"
        validator = jsonschema.Draft202012Validator({**content["schema"], "components": document["components"]})
        for example in content["examples"].values():
            validator.validate(followed(document, example)["value"])
            used.add(example["$ref"].rpartition("/")[2])
    unused = set(document["components"]["examples"]) - used
    assert unused <= {"launchClaims"}, unused


@pytest.mark.parametrize("name", make_examples.DOCUMENTS)
def test_every_operation_is_a_method_with_a_description(name):
    document = api_document(name)
    operations = [(item, item[verb]) for kind in ("paths", "webhooks") for item in document.get(kind, {}).values()
                  for verb in VERBS if verb in item]
    names = [operation["operationId"] for _, operation in operations]
    assert len(set(names)) == len(names)
    for item, operation in operations:
        assert re.fullmatch(r"[a-z]+[A-Z]\w+|signIn|signOut", operation["operationId"])
        assert operation["summary"] and len(operation["description"].split()) > 8 and operation["tags"], operation["operationId"]
        for parameter in [*item.get("parameters", []), *operation.get("parameters", [])]:
            assert followed(document, parameter).get("description"), (operation["operationId"], parameter)


@pytest.mark.parametrize("name", make_examples.DOCUMENTS)
def test_every_integer_that_32_bits_may_not_hold_is_an_int64(name):
    """A generator makes a 32-bit type of an integer without a format. An event's id has up to 20 digits and fits in neither."""
    def integers(node, path):
        if isinstance(node, list):
            for number, item in enumerate(node):
                yield from integers(item, (*path, number))
        elif isinstance(node, dict):
            types = node.get("type")
            if types == "integer" or types in (["integer", "null"], ["null", "integer"]):
                yield path, node
            for key, value in node.items():
                if key not in ("examples", "example"):
                    yield from integers(value, (*path, key))

    found = dict(integers(api_document(name), ()))
    assert found
    assert not [path for path, schema in found.items()
                if ("int64" if 2**31 <= schema.get("maximum", 2**31) < 2**63 else None) != schema.get("format")]


@pytest.mark.parametrize("name", make_examples.DOCUMENTS)
def test_every_member_has_a_description(name):
    document = api_document(name)

    def look(node, path):
        if isinstance(node, list):
            for number, item in enumerate(node):
                look(item, (*path, number))
        elif isinstance(node, dict):
            members = node.get("properties", {}) if path[-1] not in ("properties", "examples", "value") else {}
            for member, schema in members.items():
                if schema is not False:
                    assert schema.get("description") or followed(document, schema).get("description"), (*path, member)
            for key, value in node.items():
                if key not in ("examples", "example"):
                    look(value, (*path, key))

    look(document, (name,))


# ---- the pages and the documents -------------------------------------------------------------------------


def rows_of(page, head):
    """The cells of the rows of a page's tables that begin with this line."""
    found = []
    for table in (ROOT / "docs" / page).read_text().split(head + "\n")[1:]:
        for line in table.splitlines()[1:]:
            if not line.startswith("|"):
                break
            found.append([cell.strip() for cell in line.strip("|").split(" | ")])
    assert found, head
    return found


def test_the_tables_of_errors_are_those_of_the_document():
    document = api_document("openapi")
    listed = {}  # a code may have a message for each of its causes
    for page in ("interface.md", "account.md"):
        for status, code, message, *_ in rows_of(page, "| status | code | message | when |"):
            listed.setdefault(code.strip("`"), (int(status), []))[1].append(message)
    assert {code: row["status"] for code, row in document["x-errors"].items()} == {code: status for code, (status, _) in listed.items()}
    named = {"invalid_request", "unknown_field"}  # whose messages name a field
    for code in listed.keys() - named:
        assert document["components"]["examples"][code]["value"] in [{"error": code, "message": message} for message in listed[code][1]]


def test_the_routes_of_the_page_are_those_of_the_document():
    paths = api_document("openapi")["paths"]
    rows = [*rows_of("interface.md", "| method | path | key | rate limited | answers |"), *rows_of("account.md", "| method | path | area | what |")]
    assert {(method.lower(), path.strip("`")) for method, path, *_ in rows} == {
        (verb, path) for path, item in paths.items() for verb in VERBS if verb in item}


def test_the_fields_of_the_wallet_s_page_are_those_of_the_document():
    schemas = api_document("openapi")["components"]["schemas"]
    for cell, *cells in rows_of("wallet.md", "| field | BALANCE | DEBIT | CREDIT | ROLLBACK |"):
        field = re.match(r"`(\w+)`", cell)[1]
        for operation, said in zip(("Balance", "Debit", "Credit", "Rollback"), cells):
            schema = schemas[f"{operation}Request"]
            taken = schema["properties"].get(field, {"type": "null"})
            assert ("no" if taken.get("type") == "null" else "yes" if field in schema["required"] else "may") == (
                "yes" if re.match(r"\d+ or more$", said) else said.partition(":")[0]), (field, operation)
            least = re.match(r"(\d+) or more$", said)
            assert not least or taken["minimum"] == int(least[1])


def test_headers_of_the_page_are_in_the_document():
    document = api_document("openapi")
    described = set(document["components"]["headers"]) | {"Content-Type", "X-Content-Type-Options"}
    for head in ("| header | |",):
        for cell, *_ in rows_of("interface.md", head):
            for name in re.findall(r"`([A-Z][\w-]+)", cell):
                assert name in described, name
