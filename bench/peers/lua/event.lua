-- The event route as a team would write it with nginx, Lua and lua-resty-redis (Debian's lua-nginx-redis):
-- customers in memory, catalog and odds read from Redis for each request over pooled connections, the
-- answer written as JSON. For bench/run.py.
--
-- What it leaves out compared with croupier is in its favour: CIDR lists, a rate limit that instances share
-- (here it is the worker's), an access log, entity tags and gzip, exact numbers (cjson prints fourteen digits),
-- empty arrays (Debian's cjson makes objects of them). Both values come with one MGET, with a deadline so long
-- that a queue at full load does not hit it. Interest is written once a second and event, as croupier does it.

local cjson = require("cjson")
local redis = require("nginx.redis")

local event = {}
local customers, host, port
local sports = {
  cricket = true, football = true, tennis = true, ["horse-racing"] = true, ["greyhound-racing"] = true,
}
local noted = {}

-- In the master: file has {KEY: {"sports": [SPORT], "limit": N, "seconds": N}}.
function event.setup(file, redis_host, redis_port)
  local handle = assert(io.open(file))
  customers = cjson.decode(handle:read("*a"))
  handle:close()
  for _, customer in pairs(customers) do
    local allowed = {}
    for _, sport in ipairs(customer.sports) do allowed[sport] = true end
    customer.sports, customer.window, customer.used = allowed, 0, 0
  end
  host, port = redis_host, redis_port
end

local function refuse(status, code, message)
  ngx.status = status
  ngx.print(cjson.encode({ error = code, message = message }))
end

local function key_of()
  local authorization = ngx.var.http_authorization
  if authorization and authorization:sub(1, 7):lower() == "bearer " then return authorization:sub(8) end
  return ngx.var.http_x_api_key
end

local function within_limit(customer)
  local window = math.floor(ngx.time() / customer.seconds)
  if customer.window ~= window then customer.window, customer.used = window, 0 end
  customer.used = customer.used + 1
  return customer.used <= customer.limit
end

local function note_interest(connection, sport, id)
  local member, now = sport .. ":" .. id, ngx.now()
  if now - (noted[member] or 0) < 1 then return end
  noted[member] = now
  connection:zadd("interest:" .. sport, math.floor(now * 1000), id)
end

-- Returns catalog and odds (ngx.null: not stored) and the connection; nil when Redis cannot be asked.
local function load_values(sport, id)
  local connection = redis:new()
  connection:set_timeout(5000)
  if not connection:connect(host, port) then return nil end
  local values = connection:mget("catalog:" .. sport, "odds:" .. sport .. ":" .. id)
  if not values then return nil end
  return values[1], values[2], connection
end

local function find_event(catalog, id)
  for _, row in ipairs(cjson.decode(catalog)) do
    local gmid = row.gmid
    if type(gmid) == "number" then gmid = string.format("%.0f", gmid) end
    if gmid == id then return row end
  end
end

local function without_hidden(row, markets)
  row.providerEventId, row.feed_source = nil, nil
  for _, market in ipairs(markets) do market.tv, market.tvChannel, market.odd_type = nil, nil, nil end
end

local function answer_event(sport, id, catalog, odds, connection)
  if catalog == ngx.null then return refuse(503, "catalog_unavailable", "Event data not yet published.") end
  local read, row = pcall(find_event, catalog, id)
  if not read then return refuse(502, "malformed_upstream_data", "The stored data cannot be read.") end
  if not row then return refuse(404, "event_not_found", "Event not found") end
  note_interest(connection, sport, id)
  if odds == ngx.null then return refuse(404, "odds_not_found", "No odds are stored for this event.") end
  local decoded, markets = pcall(cjson.decode, odds)
  if not decoded then return refuse(502, "malformed_upstream_data", "The stored data cannot be read.") end
  without_hidden(row, markets)
  local body = cjson.encode({ sport = sport, event_id = row.gmid, event = row, odds = markets })
  ngx.header["Content-Length"] = #body
  ngx.print(body)
end

function event.answer()
  local key = key_of()
  local customer = key and customers[key]
  if not customer then return refuse(403, "ip_not_allowed", "Client address is not allowed.") end
  if not within_limit(customer) then return refuse(429, "rate_limited", "Too many requests.") end
  local sport, id = ngx.var.uri:match("^/api/v1/([^/]+)/events/([^/]+)$")
  if not sport then return refuse(404, "not_found", "No such path.") end
  if not sports[sport] then return refuse(400, "invalid_sport", "Unsupported sport.") end
  if #id > 20 or not id:match("^%d+$") or id:match("^0+$") then
    return refuse(400, "invalid_event_id", "The event id is not a positive integer.")
  end
  if not customer.sports[sport] then
    return refuse(403, "sport_not_allowed", "This sport is not enabled for your IP.")
  end
  local catalog, odds, connection = load_values(sport, id)
  if not catalog then return refuse(503, "cache_unavailable", "The data store is unavailable.") end
  answer_event(sport, id, catalog, odds, connection)
  connection:set_keepalive(10000, 100)
end

return event
