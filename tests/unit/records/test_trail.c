/* trail: what a record holds as JSON, and what of it differs. */
#include "records/records.h"
#include "tests.h"

/* What the trail says of a change; `before` may be NULL. False: nothing has changed. */
static bool change(const struct record_table *table, const void *before, const void *after,
                   struct buffer texts[2])
{
    struct trail_image images[2] = {0};
    if (before != NULL)
        trail_image_of(&images[0], table, before);
    trail_image_of(&images[1], table, after);
    bool differs = trail_images_differ(&images[0], &images[1]);
    buffer_clear(&texts[0]);
    buffer_clear(&texts[1]);
    trail_images_write(&images[0], &images[1], &texts[0], &texts[1]);
    trail_image_free(&images[0]);
    trail_image_free(&images[1]);
    return differs;
}

static void free_texts(struct buffer texts[2])
{
    buffer_free(&texts[0]);
    buffer_free(&texts[1]);
}

TEST(columns_that_differ_are_said_and_no_others)
{
    struct buffer texts[2] = {0};
    struct customer_record before = {.id = "cus_1", .name = "One"};
    assert_int_equal(cidr_parse(TEXT("192.0.2.0/24"), &before.cidrs[0], NULL), STATUS_OK);
    assert_int_equal(cidr_parse(TEXT("2001:db8::/32"), &before.cidrs[1], NULL), STATUS_OK);
    struct customer_record after = before;
    before.cidr_count = 2;
    after.cidr_count = 1;
    after.rate = (struct rate_limit){true, 600, 60};
    after.revision = 7;
    assert_true(change(&customer_table, &before, &after, texts));
    assert_string_equal(buffer_string(&texts[0]), "{\"rate_requests\":null,\"rate_window_seconds\":"
                                                  "null,\"cidrs\":\"192.0.2.0/24 2001:db8::/32\"}");
    assert_string_equal(buffer_string(&texts[1]),
                        "{\"rate_requests\":600,\"rate_window_seconds\":60"
                        ",\"cidrs\":\"192.0.2.0/24\"}");
    free_texts(texts);
}

TEST(what_is_added_has_every_column_and_nothing_before)
{
    struct buffer texts[2] = {0};
    struct legacy_record record = {.enabled = true, .sports = SPORT_SET_ALL, .created_ms = 5};
    assert_true(change(&legacy_table, NULL, &record, texts));
    assert_int_equal(texts[0].size, 0);
    assert_string_equal(buffer_string(&texts[1]),
                        "{\"enabled\":true,\"removed\":false,\"sports\":\"all\",\"rate_requests\":"
                        "null,\"rate_window_seconds\":null,\"created_ms\":5}");
    free_texts(texts);
}

TEST(a_revision_and_what_the_program_notes_are_no_change)
{
    struct buffer texts[2] = {0};
    struct key_record before = {.id = "key_1", .prefix = "crk_abcd", .created_ms = 1};
    struct key_record after = before;
    after.revision = 9;
    after.last_used_ms = 1763700000000;
    assert_false(change(&key_table, &before, &after, texts));
    struct game_record game = {.id = "g", .updated_ms = 1};
    struct game_record later = game;
    later.updated_ms = 2;
    assert_false(change(&game_table, &game, &later, texts));
    free_texts(texts);
}

TEST(secrets_are_named_and_never_shown)
{
    struct buffer texts[2] = {0};
    struct provider_record before = {.id = "p",
                                     .secrets = {{.sealed = "first secret", .size = 12}}};
    struct provider_record after = {.id = "p", .secrets = {{.sealed = "other secret", .size = 12}}};
    assert_true(change(&provider_table, &before, &after, texts));
    assert_string_equal(buffer_string(&texts[0]), "{\"secret\":\"not shown\"}");
    assert_string_equal(buffer_string(&texts[1]), "{\"secret\":\"not shown\"}");
    struct key_record key = {.id = "key_1", .prefix = "crk_abcd", .digest = {0xAB, 0xCD}};
    assert_true(change(&key_table, NULL, &key, texts));
    assert_non_null(strstr(buffer_string(&texts[1]), "\"digest\":\"not shown\""));
    assert_null(strstr(buffer_string(&texts[1]), "abcd0000"));
    free_texts(texts);
}

TEST(an_object_is_an_id_or_an_address)
{
    struct trail_image image = {0};
    struct legacy_record legacy = {.enabled = true};
    struct customer_record customer = {.id = "cus_1", .name = "One"};
    assert_int_equal(address_parse(TEXT("192.0.2.1"), &legacy.address), STATUS_OK);
    trail_image_of(&image, &legacy_table, &legacy);
    assert_string_equal(image.object, "192.0.2.1");
    trail_image_of(&image, &customer_table, &customer);
    assert_string_equal(image.object, "cus_1");
    trail_image_free(&image);
}

/* A row that a person has edited, or that is damaged. */
TEST(values_that_no_field_would_take_are_written_all_the_same)
{
    struct trail_image before = {0};
    struct trail_image after = {0};
    struct buffer texts[2] = {0};
    struct customer_record record = {.id = "cus_1", .name = "One", .enabled = true};
    char endless[1000];
    memset(endless, 'x', sizeof endless);
    trail_image_of(&after, &customer_table, &record);
    trail_image_begin(&before, &customer_table);
    for (size_t i = 0; i < customer_table.column_count; i++) {
        struct column_value value = {.kind = customer_table.columns[i].type->kind,
                                     .integer = 2,
                                     .bytes = {endless, sizeof endless}};
        if (i == 1)
            value.bytes = TEXT("\xFF\"\n");
        trail_image_add(&before, i, &value);
    }
    assert_string_equal(before.object, "");
    assert_true(trail_images_differ(&before, &after));
    trail_images_write(&before, &after, &texts[0], &texts[1]);
    assert_non_null(
        strstr(buffer_string(&texts[0]), "{\"name\":\"\xEF\xBF\xBD\\\"\\n\",\"enabled\":2"));
    free_texts(texts);
    trail_image_free(&before);
    trail_image_free(&after);
}

TEST(a_row_that_is_no_trail_is_refused)
{
    struct trail_record sound = {
        .who = "anna", .command = "customer set", .kind = "customer", .object = "cus_1"};
    sound.before = sound.after = TEXT("{\"enabled\":true}");
    assert_int_equal(trail_table.check(&sound, NULL), STATUS_OK);
    struct trail_record wrong[5] = {sound, sound, sound, sound, sound};
    wrong[0].who[0] = '\0';
    wrong[1].object[0] = '\n';
    wrong[2].after = TEXT("");
    wrong[3].after = TEXT("[]");
    wrong[4].before = TEXT("{\"enabled\":tru}");
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(trail_table.check(&wrong[i], NULL), STATUS_INVALID);
    sound.before = TEXT("");
    assert_int_equal(trail_table.check(&sound, NULL), STATUS_OK);
}
