/** The Prometheus text format, version 0.0.4. */
export const prometheusContentType = 'text/plain; version=0.0.4; charset=utf-8'

/** The lines before the series of a metric. */
export const metricHead = (name: string, type: string, help: string) =>
  `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`

/** Label values: backslash, quote and line feed are escaped. */
const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }
const escapeLabel = (value: string) => value.replace(/[\\"\n]/g, (found) => escapes[found] ?? '')

/** `{name="value",...}`, or nothing if there are no labels. `extra` is one more label as text. */
export function labelText(names: readonly string[], values: readonly string[], extra = ''): string {
  const pairs = names.map((name, at) => `${name}="${escapeLabel(values[at] ?? 'unknown')}"`)
  if (extra !== '') pairs.push(extra)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}
