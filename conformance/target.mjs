// The server under test, as run.mjs started it, and what every suite does with it.
import { readFile } from "node:fs/promises";
import { CLEAR, DELETE, MACHINE, RAISE, REPORT, SITE } from "./documents.mjs";

const { CONFORMANCE_URL: origin, CONFORMANCE_TOKEN: token, CONFORMANCE_TARGET: name } = process.env;
if (!origin || !token || !name) throw new Error("start the suites with conformance/run, which starts a server for them");

/** Which server it is: "fleetgraph" or "reference". */
export const target = name;
export const site = "demo";
export const url = `${origin}/graphql`;
export const socketURL = url.replace(/^http/, "ws");
export const authorization = `Bearer ${token}`;

/** graph runs one operation over plain HTTP and returns its data. */
export async function graph(query, variables) {
  const response = await fetch(url, {
    method: "POST",
    headers: { authorization, "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = await response.json();
  if (errors) throw new Error(`${query}: ${JSON.stringify(errors)}`);
  return data;
}

/** demoMachine is a machine that nothing happens to. */
export const demoMachine = async () => (await graph(MACHINE, { site, name: "gpu-01" })).machine;

let machines = 0;

/** newMachine reports a machine of the caller's own, so that suites do not see one another's events. */
export async function newMachine() {
  const n = `${process.pid % 0xffff}`.padStart(5, "0") + `${machines++}`.padStart(3, "0");
  const [inventory, { site: at }] = await Promise.all([
    readFile(new URL("../server/demo/inventories/composed/r760_9nvme.json", import.meta.url), "utf8"),
    graph(SITE, { name: site }),
  ]);
  const mac = `02:fc:${n.match(/../g).join(":")}`;
  const input = { siteId: at.id, bmcMacAddress: mac, name: `conformance-${n}`, inventory: JSON.parse(inventory) };
  return (await graph(REPORT, { input })).reportInventory.machine;
}

/** raise makes an event of a machine, whose message is the text. */
export async function raise(machine, message = "conformance") {
  const input = { machineId: machine.id, alertId: "Conformance", message };
  return (await graph(RAISE, { input })).raiseHealthAlert.healthAlert;
}

export const clear = (alert) => graph(CLEAR, { input: { healthAlertId: alert.id } });

export const remove = (machine) => graph(DELETE, { input: { machineId: machine.id } });
