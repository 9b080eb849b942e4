// Holds the objects of a JSON file against the schemas of Kubernetes; says of each that does not fit its number and what is wrong.
import { readFileSync } from "node:fs";

for (const [number, object] of JSON.parse(readFileSync(process.argv[2], "utf8")).entries()) {
    const models = await import(`kubernetes-models/${object.apiVersion}`);
    try {
        new models[object.kind](object).validate();
    } catch (error) {
        console.log(`${number}: ${error.message}`);
    }
}
