// Prints the requests that Postman's importer makes of an OpenAPI document, as JSON: node convert.mjs DOCUMENT NODE_MODULES
import {createRequire} from "node:module";
import {readFileSync} from "node:fs";

const [document, modules] = process.argv.slice(2);
const importer = createRequire(`${modules}/`)("openapi-to-postmanv2");
// In Postman: Import, "View import settings", "Parameter generation: Example", "Enable optional parameters: off".
const settings = {parametersResolution: "Example", enableOptionalParameters: false};

function requests(items) {
    return items.flatMap(item => item.item ? requests(item.item) : [{
        name: item.name,
        method: item.request.method,
        path: "/" + item.request.url.path.map(part => part.startsWith(":")
            ? encodeURIComponent(item.request.url.variable.find(variable => variable.key === part.slice(1)).value) : part).join("/"),
        query: (item.request.url.query ?? []).filter(one => !one.disabled).map(one => [one.key, one.value]),
        headers: item.request.header.filter(one => !one.disabled).map(one => [one.key, one.value]),
        body: item.request.body?.raw ?? null,
    }]);
}

importer.convertV2({type: "string", data: readFileSync(document, "utf8")}, settings, (error, result) => {
    if (error || !result.result)
        throw error ?? new Error(result.reason);
    console.log(JSON.stringify(requests(result.output[0].data.item)));
});
