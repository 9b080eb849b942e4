// A customer's program against the types that openapi-typescript makes of docs/openapi.yaml
// (api.ts). It is only type-checked: `@ts-expect-error` fails the check where the types would let
// the line pass.
import type {components, paths} from "./api";

type Schemas = components["schemas"];
type Event = paths["/api/v1/{sport}/events/{eventId}"]["get"]["responses"]["200"]["content"]["application/json"];
type Is<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;

function bestPrice(event: Event): string {
    for (const market of event.odds) {
        for (const runner of market.runners ?? []) {
            const best = runner.ex?.availableToBack?.[0];
            if (best?.price !== undefined && Number(best.price) !== 0)
                return `${runner.runnerName} ${best.price} up to ${best.size}, at most ${market.max}`;
        }
        for (const section of market.section ?? [])
            for (const odds of section.odds ?? [])
                if (odds.otype === "back")
                    return `${section.nat} ${odds.odds}/${odds.size} from ${section.min}`;
    }
    return `no price: ${event.event.ename}, ${event.event.cname}, ${event.event.stime}`;
}

const id: Is<Schemas["Id"], number | string> = true;
const gmid: Is<NonNullable<Schemas["Event"]["gmid"]>, number | string> = true;
const selection: Is<NonNullable<Schemas["Runner"]["selectionId"]>, number | string> = true;
const price: Is<NonNullable<Schemas["Price"]["price"]>, number | string> = true;
const line: Is<NonNullable<Schemas["SectionOdds"]["odds"]>, number | string> = true;

// @ts-expect-error an id is no boolean
const wrongId: Schemas["Event"] = {gmid: true};
// @ts-expect-error a price is no list
const wrongPrice: Schemas["Price"] = {price: []};

export {bestPrice, id, gmid, selection, price, line, wrongId, wrongPrice};
