/*
 * Fuzzes what reads a launch: the customer's request, and the answer of a provider.
 *
 * Holds for every input: what is accepted is strict JSON with the same values, as json_text reads it;
 * a URL that is handed on is printable ASCII and https, or http to this machine; what has expired
 * is refused.
 */
#include <string.h>
#include <strings.h>

#include "base/json_text.h"
#include "launch/document.h"

#define NOW_MS 1763700000000

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The text under that name is `value`; or it is not there, or null, and `value` is "". */
static void check_member(struct text root, const char *name, const char *value)
{
    struct text member = json_text_member(root, text_of(name));
    if (value[0] == '\0')
        CHECK(member.at == NULL || text_equals(member, TEXT("null")));
    else
        CHECK(json_text_string_equals(member, text_of(value)));
}

static struct text read_object(struct text body)
{
    CHECK(json_text_check(body, NULL, NULL) == STATUS_OK);
    struct text root = json_text_trim(body);
    CHECK(json_text_kind(root) == JSON_TEXT_OBJECT);
    return root;
}

static void check_answer(struct text body)
{
    struct launch_answer answer = {.expires_ms = -1};
    if (launch_answer_decode(body, NOW_MS, &answer) != NULL) {
        CHECK(answer.expires_ms == -1 && answer.launch_url[0] == '\0');
        return;
    }
    CHECK(body.size <= LAUNCH_ANSWER_MAX);
    CHECK(answer.expires_ms == 0 || answer.expires_ms > NOW_MS);
    CHECK(strncasecmp(answer.launch_url, "https://", 8) == 0 ||
          strncasecmp(answer.launch_url, "http://127.", 11) == 0 ||
          strncasecmp(answer.launch_url, "http://[::1]", 12) == 0 ||
          strncasecmp(answer.launch_url, "http://localhost", 16) == 0);
    for (const char *at = answer.launch_url; *at != '\0'; at++)
        CHECK(*at > ' ' && *at < 0x7f);
    check_member(read_object(body), "launch_url", answer.launch_url);
}

static void check_request(struct text body)
{
    struct launch_request request;
    struct strict_json_fault fault;
    if (launch_request_decode(TEXT("application/json"), body, &request, &fault) != STRICT_JSON_OK)
        return;
    struct text root = read_object(body);
    check_member(root, "mode", request.real ? "real" : "demo");
    if (request.real) {
        CHECK(request.player_reference[0] != '\0' && request.currency[0] != '\0');
        check_member(root, "player_reference", request.player_reference);
        check_member(root, "currency", request.currency);
    }
    check_member(root, "language", request.language);
    check_member(root, "device", request.device);
    check_member(root, "country", request.country);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct text body = {(const char *)bytes, size};
    check_answer(body);
    check_request(body);
    return 0;
}
