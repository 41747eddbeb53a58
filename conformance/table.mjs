// A reporter of node's test runner: the failures in full, then a line a suite.
import { inspect } from "node:util";

export default async function* table(events) {
  const suites = [];
  let current = [];
  for await (const { type, data } of events) {
    if (type === "test:stderr" || type === "test:stdout") yield data.message;
    if (type !== "test:pass" && type !== "test:fail") continue;
    const failed = type === "test:fail";
    const whole = data.nesting === 0;
    if (!whole) current.push(!failed);
    if (failed && (!whole || current.every(Boolean))) {
      const { error } = data.details;
      yield `\nFAILED  ${data.name}\n${inspect(error?.cause ?? error)}\n`;
    }
    if (whole) {
      suites.push({ name: data.name, checks: current, passed: !failed, seconds: data.details.duration_ms / 1000 });
      current = [];
    }
  }
  const width = Math.max(...suites.map(({ name }) => name.length));
  yield "\n";
  for (const { name, checks, passed, seconds } of suites) {
    const count = `${checks.filter(Boolean).length} of ${checks.length}`;
    yield `${passed ? "ok    " : "FAILED"}  ${name.padEnd(width)}  ${count.padStart(12)}  ${seconds.toFixed(1).padStart(6)} s\n`;
  }
}
