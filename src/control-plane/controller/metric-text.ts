/** The Prometheus text format (version 0.0.4) for counters, gauges and summaries without quantiles. */
export interface MetricRow {
  readonly type: 'counter' | 'gauge' | 'summary'
  readonly labels: readonly string[]
  readonly help: string
}

/** Series by their label values. */
export type MetricValues = Map<
  string,
  { readonly labels: readonly string[]; sum: number; count: number }
>

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }
const escapeLabel = (value: string) => value.replace(/[\\"\n]/g, (found) => escapes[found] ?? '')

function labelText(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return ''
  const pairs = names.map((name, at) => `${name}="${escapeLabel(values[at] ?? '')}"`)
  return `{${pairs.join(',')}}`
}

/** Metrics without a series are left out. */
export function writeMetricText(
  prefix: string,
  rows: Readonly<Record<string, MetricRow>>,
  values: ReadonlyMap<string, MetricValues>,
): string {
  let text = ''
  for (const [short, { type, labels, help }] of Object.entries(rows)) {
    const series = values.get(short)
    if (series === undefined) continue
    const name = `${prefix}${short}`
    text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
    for (const { labels: own, sum, count } of series.values()) {
      const given = labelText(labels, own)
      text +=
        type === 'summary'
          ? `${name}_sum${given} ${sum}\n${name}_count${given} ${count}\n`
          : `${name}${given} ${sum}\n`
    }
  }
  return text
}
