// Every request of the console goes through here.

/** What the server refused. `field` names the field that is wrong, when one is. */
export class ApiError extends Error {
    constructor(status, error, retryAfter) {
        super(error.message ?? "The server answered in a way that this page does not know.");
        Object.assign(this, { status, retryAfter, code: error.code ?? "unknown", field: error.field ?? null,
            line: error.line ?? null, changedBy: error.changed_by ?? null, changedAt: error.changed_at ?? null });
    }
}

const tags = new WeakMap();
/** The entity tag that an object came with, for If-Match. */
export const tagOf = (data) => tags.get(data) ?? null;

let signedOut = () => {};
/** What is done when a session is over. */
export function onSignedOut(callback) {
    signedOut = callback;
}

export function url(path, query) {
    const text = new URLSearchParams(Object.entries(query ?? {}).filter(([, value]) =>
        value !== null && value !== undefined && value !== "")).toString();
    return `/admin/v1/${path}${text ? `?${text}` : ""}`;
}

function readJson(text) {
    try {
        return JSON.parse(text);
    } catch {
        return null;
    }
}

/** Sends a request. `options`: query, body (an object), text (a body that is JSON already), match (If-Match), known (the
 *  tag of what is at hand: then null is answered for a 304), wait (for how many seconds the server may wait for something
 *  else than that), signal. Answers {data, text, tag}; throws ApiError. */
export async function api(method, path, { query, body, text, match, known, wait, signal } = {}) {
    const headers = { Accept: "application/json" };
    const sent = text ?? (body === undefined ? undefined : JSON.stringify(body));
    if (sent !== undefined) {
        headers["Content-Type"] = "application/json";
    }
    if (match) {
        headers["If-Match"] = match;
    }
    if (known) {
        headers["If-None-Match"] = known;
        if (wait) {
            headers.Prefer = `wait=${wait}`;
        }
    }
    let response;
    try {
        response = await fetch(url(path, query), { method, headers, body: sent, signal, cache: "no-store" });
    } catch (error) {
        if (error.name === "AbortError") {
            throw error;
        }
        throw new ApiError(0, { code: "unreachable", message: "The server does not answer." });
    }
    if (response.status === 304) {
        return null;
    }
    const received = await response.text();
    const data = received === "" ? null : readJson(received);
    if (!response.ok) {
        if (response.status === 401 && path !== "session") {
            signedOut();
        }
        const error = typeof data?.error === "object" ? data.error : { code: data?.error, message: data?.message };
        throw new ApiError(response.status, error ?? {}, response.headers.get("Retry-After"));
    }
    const tag = response.headers.get("ETag");
    if (data !== null && tag !== null) {
        tags.set(data, tag);
    }
    return { data, text: received, tag };
}

export const get = async (path, query, signal) => (await api("GET", path, { query, signal })).data;
export const post = async (path, body) => (await api("POST", path, { body })).data;
export const remove = async (path) => (await api("DELETE", path)).data;
/** `was`: the object as it was shown, so that nobody's change is written over unseen. */
export const patch = async (path, body, was) => (await api("PATCH", path, { body, match: tagOf(was) })).data;
export const put = async (path, body) => (await api("PUT", path, { body })).data;
