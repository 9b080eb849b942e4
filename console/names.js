// Customers are shown by their names, which are read once: those of the first page together, others one by one.
import { get } from "./api.js";
import { fill, h } from "./dom.js";

const names = new Map();
let first = null;

export const noteName = (customer) => names.set(customer.id, customer.name);

async function find(id) {
    first ??= get("customers", { limit: 200 }).then(({ items }) => items.forEach(noteName), () => { first = null; });
    await first;
    if (!names.has(id)) {
        noteName(await get(`customers/${encodeURIComponent(id)}`));
    }
    return names.get(id);
}

/** The name of a customer; its id where that cannot be found. */
export const customerName = (id) => find(id).catch(() => id);

/** A link to a customer, or elsewhere, by name. */
export function customerLink(id, href = `#/customers/${id}`) {
    const link = h("a", { href, title: id }, names.get(id) ?? "…");
    if (!names.has(id)) {
        customerName(id).then((name) => fill(link, name));
    }
    return link;
}
