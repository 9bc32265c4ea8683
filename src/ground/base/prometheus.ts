/** Content type of the Prometheus text format, version 0.0.4. */
export const prometheusContentType = 'text/plain; version=0.0.4; charset=utf-8'

/** The HELP and TYPE lines of a metric. */
export const metricHead = (name: string, type: string, help: string) =>
  `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`

/** Characters that are escaped in label values, with their escapes. */
const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }
const escapeLabel = (value: string) => value.replace(/[\\"\n]/g, (found) => escapes[found] ?? '')

/** Formats labels as `{name="value",...}`; empty if there are none. `extra` is one more formatted label. */
export function labelText(names: readonly string[], values: readonly string[], extra = ''): string {
  const pairs = names.map((name, at) => `${name}="${escapeLabel(values[at] ?? 'unknown')}"`)
  if (extra !== '') pairs.push(extra)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}
