/* base/json_writer: documents, front to back. */
#include "base/json_writer.h"
#include "tests.h"

/* Writes some of everything. */
static void write_sample(struct json_writer *json)
{
    static const uint8_t bytes[] = {0x00, 0x9F, 0xFF};
    json_object(json, NULL);
    json_string(json, "text", "a\"b\n");
    json_string_or_null(json, "missing", "");
    json_integer(json, "least", INT64_MIN);
    json_unsigned(json, "most", UINT64_MAX);
    json_array(json, "list");
    json_bool(json, NULL, true);
    json_object(json, NULL);
    json_end(json);
    json_null(json, NULL);
    json_end(json);
    json_array(json, "none");
    json_end(json);
    json_lines(json, "lines", TEXT("x\ny"));
    json_hex(json, "hex", bytes, sizeof bytes);
    json_raw(json, "raw", TEXT("1.80"));
    json_end(json);
}

TEST(the_layouts_differ_in_white_space_alone)
{
    static const char *const expected[] = {
        [JSON_COMPACT] = "{\"text\":\"a\\\"b\\n\",\"missing\":null,\"least\":-9223372036854775808,"
                         "\"most\":18446744073709551615,\"list\":[true,{},null],\"none\":[],"
                         "\"lines\":[\"x\",\"y\"],\"hex\":\"009fff\",\"raw\":1.80}",
        [JSON_SPACED] = "{\"text\": \"a\\\"b\\n\", \"missing\": null, \"least\": "
                        "-9223372036854775808, \"most\": 18446744073709551615, \"list\": [true, "
                        "{}, null], \"none\": [], \"lines\": [\"x\", \"y\"], \"hex\": \"009fff\", "
                        "\"raw\": 1.80}",
        [JSON_ROWS] = "{\"text\":\"a\\\"b\\n\",\n \"missing\":null,\n "
                      "\"least\":-9223372036854775808,\n \"most\":18446744073709551615,\n "
                      "\"list\":[true,{},null],\n \"none\":[],\n \"lines\":[\"x\",\"y\"],\n "
                      "\"hex\":\"009fff\",\n \"raw\":1.80}",
        [JSON_INDENTED] = "{\n"
                          "    \"text\": \"a\\\"b\\n\",\n"
                          "    \"missing\": null,\n"
                          "    \"least\": -9223372036854775808,\n"
                          "    \"most\": 18446744073709551615,\n"
                          "    \"list\": [\n"
                          "        true,\n"
                          "        {},\n"
                          "        null\n"
                          "    ],\n"
                          "    \"none\": [],\n"
                          "    \"lines\": [\n"
                          "        \"x\",\n"
                          "        \"y\"\n"
                          "    ],\n"
                          "    \"hex\": \"009fff\",\n"
                          "    \"raw\": 1.80\n"
                          "}",
    };
    for (int layout = JSON_COMPACT; layout <= JSON_INDENTED; layout++) {
        struct buffer out = {0};
        struct json_writer json = {.out = &out, .layout = (enum json_layout)layout};
        write_sample(&json);
        assert_string_equal(buffer_string(&out), expected[layout]);
        assert_int_equal(json.depth, 0);
        buffer_free(&out);
    }
}

TEST(a_time_of_zero_is_null)
{
    struct buffer out = {0};
    struct json_writer json = {.out = &out};
    json_array(&json, NULL);
    json_time(&json, NULL, 0);
    json_time(&json, NULL, 1763700797042);
    json_end(&json);
    assert_string_equal(buffer_string(&out), "[null,\"2025-11-21T04:53:17.042Z\"]");
    buffer_free(&out);
}

TEST(what_is_written_can_be_taken_away_meanwhile)
{
    struct buffer out = {0};
    struct json_writer json = {.out = &out};
    json_array(&json, NULL);
    json_space(&json, "\n");
    json_integer(&json, NULL, 1);
    assert_string_equal(buffer_string(&out), "[\n1");
    buffer_clear(&out);
    json_space(&json, "\n ");
    json_integer(&json, NULL, 2);
    json_integer(&json, NULL, 3);
    assert_string_equal(buffer_string(&out), ",\n 2,3");
    buffer_clear(&out);
    json_end(&json);
    assert_string_equal(buffer_string(&out), "]");
    buffer_free(&out);
}

TEST(depth_is_remembered_to_the_bound)
{
    struct buffer out = {0};
    struct json_writer json = {.out = &out};
    for (unsigned i = 0; i < JSON_WRITER_DEPTH_MAX; i++)
        if (i % 2 == 0)
            json_array(&json, i == 0 ? NULL : "a");
        else
            json_object(&json, NULL);
    for (unsigned i = 0; i < JSON_WRITER_DEPTH_MAX; i++)
        json_end(&json);
    assert_true(text_starts_with(buffer_text(&out), TEXT("[{\"a\":[{\"a\":[")));
    assert_string_equal(buffer_string(&out) + out.size - 4, "}]}]");
    buffer_free(&out);
}
