/* http/park over real sockets: a request put aside, and back. */
#include "one_client.h"

static bool is_parked(void)
{
    return loopback.parked.connection != NULL;
}

static void park(struct client *client)
{
    SEND(client, GET("/wait?for"));
    WAIT_UNTIL(&loopback, is_parked());
}

static struct http_request *unpark(void)
{
    struct http_request *request = http_unpark(&loopback.parked);
    assert_false(is_parked());
    return request;
}

TEST_OF(client, it_is_answered_as_it_came_however_much_later)
{
    park(client);
    loopback_advance(&loopback, 60000); /* no deadline of a connection counts meanwhile */
    assert_true(is_parked());
    assert_int_equal(loopback.gone + loopback.outcomes, 0);
    struct http_request *request = unpark();
    assert_int_equal(request->field_count[HTTP_FIELD_HOST], 1);
    assert_true(text_equals(http_request_field(request, HTTP_FIELD_HOST), TEXT("a")));
    assert_true(request->parked_ns > 0 && request->started_ns - request->parked_ns >= 60000000000);
    assert_true(request->repeated);
    reply_in_full(request);
    client_expect(client, "<GET /wait ? for # >");
    assert_int_equal(client_count(client, "X-Added: once"), 1);
    assert_true(loopback.last_waited_ns >= 60000000000);
    SEND(client, GET("/count")); /* and the connection goes on */
    client_expect(client, "<2>");
    assert_int_equal(loopback.last_waited_ns, 0);
}

TEST_OF(client, it_may_be_parked_again_and_has_waited_since_the_first_time)
{
    park(client);
    uint64_t since_ns = loopback.parked.since_ns;
    for (int i = 0; i < 3; i++) {
        loopback_advance(&loopback, 1000);
        struct http_request *request = unpark();
        http_request_add_field(request, TEXT("X-Look"), TEXT("lost"));
        assert_true(http_park(&loopback.parked, request));
        assert_int_equal(loopback.parked.since_ns, since_ns);
    }
    reply_in_full(unpark());
    client_expect(client, "<GET /wait ? for # >");
    assert_int_equal(client_count(client, "X-Added: once"), 1);
    assert_int_equal(client_count(client, "X-Look"), 0); /* each look says its own */
    assert_int_equal(loopback.outcomes, 1);
}

TEST_OF(client, one_with_more_fields_than_are_kept_is_answered_at_once)
{
    SEND(client, GET("/wait?much"));
    client_expect(client, "<GET /wait ? much # >");
    assert_int_equal(client_count(client, "X-Much: xxx"), 1);
    assert_false(is_parked());
}

TEST_OF(client, what_comes_behind_it_waits_for_its_answer)
{
    park(client);
    SEND(client, GET("/behind") GET("/count"));
    for (int i = 0; i < 5; i++)
        client_read(client);
    assert_int_equal(loopback.handled, 1);
    assert_int_equal(client->received.size, 0);
    reply_in_full(unpark());
    client_expect(client, "<3>");
    const char *first = strstr(buffer_string(&client->received), "<GET /wait");
    assert_non_null(first);
    assert_non_null(strstr(first, "<GET /behind"));
}

TEST_OF(client, a_client_that_is_gone_takes_it_along)
{
    park(client);
    struct linger reset = {.l_onoff = 1};
    assert_int_equal(setsockopt(client->descriptor, SOL_SOCKET, SO_LINGER, &reset, sizeof reset),
                     0);
    client_close(client);
    WAIT_UNTIL(&loopback, loopback.gone == 1);
    assert_false(is_parked());
    WAIT_UNTIL(&loopback, loopback.server->connection_count == 0);
    assert_int_equal(loopback.abandoned, 0);
}

TEST_OF(client, a_client_that_has_shut_its_side_gets_its_answer)
{
    park(client);
    assert_int_equal(shutdown(client->descriptor, SHUT_WR), 0);
    WAIT_UNTIL(&loopback, loopback.ended == 1);
    assert_int_equal(loopback.gone, 0);
    struct http_request *request = unpark();
    assert_false(http_park(&loopback.parked, request)); /* it would not be heard of any more */
    reply_in_full(request);
    client_expect(client, "<GET /wait");
    client_expect_end(client);
}

TEST_OF(client, a_request_with_a_body_is_not_parked)
{
    SEND(client, "GET /wait HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc");
    client_expect(client, "<GET /wait ?  # abc>");
    SEND(client, "GET /wait HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                 "1\r\nz\r\n0\r\n\r\n");
    client_expect(client, "<GET /wait ?  # z>");
    assert_false(is_parked());
}

TEST_OF(client, a_drain_parks_nothing_and_closes_after_the_answer)
{
    park(client);
    http_server_drain(loopback.server, 0, on_drained);
    loopback_advance(&loopback, 3000);
    assert_true(is_parked() && !loopback.drained); /* whoever parked it has to end it */
    struct http_request *request = unpark();
    assert_false(http_park(&loopback.parked, request));
    reply_in_full(request);
    client_expect(client, "<GET /wait");
    assert_true(client_has(client, "\r\nConnection: close\r\n"));
    client_expect_end(client);
    client_close(client);
    WAIT_UNTIL(&loopback, loopback.drained);
}

TEST_OF(client, an_abort_ends_it)
{
    park(client);
    http_server_drain(loopback.server, 0, on_drained);
    http_server_abort(loopback.server);
    WAIT_UNTIL(&loopback, loopback.drained);
    assert_int_equal(loopback.gone, 1);
    assert_false(is_parked());
}

TEST_OF(client, a_client_that_goes_on_sending_is_not_read_without_end)
{
    park(client);
    size_t sent = 0;
    char bytes[65536];
    memset(bytes, 'x', sizeof bytes);
    for (ssize_t size = 0; size >= 0 || errno == EINTR; sent += size > 0 ? (size_t)size : 0) {
        size = send(client->descriptor, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        for (int i = 0; i < 4; i++)
            loopback_turn(&loopback, -1);
        assert_true(sent < 64U * 1024 * 1024); /* the kernel's buffers alone take the rest */
    }
    /* Nothing is read any more, so nothing would say that the client has gone: the wait ends. */
    assert_true(is_parked() && loopback.ended == 1);
    client_close(client);
    struct http_request *request = unpark();
    assert_false(http_park(&loopback.parked, request));
    reply_in_full(request);
    WAIT_UNTIL(&loopback, loopback.server->connection_count == 0);
    assert_int_equal(loopback.gone, 0);
}
