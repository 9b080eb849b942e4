/*
 * Parked requests. http_park gives the exchange back, which is most of the memory of a request, and
 * the connection's memo keeps the request, with the fields that were added to its reply so far.
 * While it is parked, the connection only reads, so that it notices when the client closes. If so
 * much input arrives behind the request that reading must stop, the request may not wait any
 * longer.
 */
#include "base/clock.h"
#include "http/internal.h"

bool http_may_wait(const struct http_request *request)
{
    const struct http_connection *connection = request->connection;
    CHECK(connection->magic == CONNECTION_MAGIC);
    return !connection->input_ended && !connection->read_stopped;
}

bool http_park(struct http_parked *parked, struct http_request *request)
{
    struct http_connection *connection = request->connection;
    struct http_exchange *exchange = connection->exchange;
    CHECK(connection->magic == CONNECTION_MAGIC && connection->state == CONNECTION_HANDLING);
    CHECK(&exchange->request == request && request->abandoned == NULL);
    CHECK(parked->connection == NULL && connection->parked == NULL);
    if (connection->server->draining)
        request->error = &error_draining;
    if (!http_may_wait(request) || connection->server->draining ||
        !http_memo_keep(&connection->memo, &exchange->intake, request,
                        http_exchange_added(exchange)))
        return false;
    parked->since_ns = request->parked_ns > 0 ? request->parked_ns : clock_monotonic_ns();
    parked->connection = connection;
    connection->parked = parked;
    connection->memo_is_last = true;
    connection->exchange = NULL;
    connection->state = CONNECTION_PARKED;
    http_exchange_give_back(connection->server, exchange);
    return true;
}

struct http_parked *http_parked_take(struct http_connection *connection)
{
    struct http_parked *parked = connection->parked;
    CHECK(parked != NULL && parked->connection == connection);
    parked->connection = NULL;
    connection->parked = NULL;
    return parked;
}

struct http_request *http_unpark(struct http_parked *parked)
{
    struct http_connection *connection = parked->connection;
    CHECK(connection->magic == CONNECTION_MAGIC && connection->state == CONNECTION_PARKED);
    struct http_exchange *exchange = http_exchange_begin(connection);
    connection->exchange = exchange;
    http_memo_restore(connection->memo, &exchange->intake, &exchange->request);
    http_exchange_add(exchange, http_memo_added(connection->memo));
    exchange->request.parked_ns = parked->since_ns;
    exchange->request.repeated = true;
    exchange->waited_ns = exchange->request.started_ns - parked->since_ns;
    connection->state = CONNECTION_HANDLING;
    (void)http_parked_take(connection);
    return &exchange->request;
}
