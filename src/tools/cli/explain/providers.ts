/**
 * `sluice explain providers` shows which model providers running proxies have ejected, and why. It reads the
 * metrics of the proxies, because the event log does not record ejections.
 */
import {
  type CommandResult,
  exitCode,
  type Output,
  type OutputFormat,
  table,
  UsageError,
} from '../shared/output.ts'

export interface ProviderOptions {
  /** Stats addresses of proxies; if omitted, `127.0.0.1:15020`. */
  readonly stats?: readonly string[]
  readonly output: OutputFormat
}

interface ExplainedProvider {
  /** Stats address of the proxy. */
  readonly proxy: string
  /** `namespace/name` of the GatewayBackend. */
  readonly backend: string
  readonly provider: string
  /** Why the provider was ejected: `status 429`, or an error code. */
  readonly reason: string
  /** Number of workers of the proxy that currently eject the provider. */
  readonly workers: number
  /** How many times the provider was ejected for this reason since the proxy started. */
  readonly times: number
}

const localAddress = '127.0.0.1:15020'
const timeoutMs = 5_000

/** Explains all backends if `name` is omitted. The exit code is 1 if a proxy does not answer. */
export async function explainProviders(
  name: string | undefined,
  { stats = [localAddress], output }: ProviderOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const backend = name === undefined || name.includes('/') ? name : `default/${name}`
  const wrong = stats.find((address) => !/^\S+:\d{1,5}$/.test(address))
  if (wrong !== undefined) throw new UsageError(`--stats ${wrong} is not HOST:PORT`)
  const results = await Promise.allSettled(stats.map(scrapeProxy))
  const providers = results
    .flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
    .filter((provider) => backend === undefined || provider.backend === backend)
  const problems = results.flatMap((result, at) =>
    result.status === 'rejected' ? [`${stats[at]}: ${reasonText(result.reason)}`] : [],
  )
  if (output === 'text') for (const problem of problems) report(problem)
  const noneText = problems.length < stats.length ? ['no provider was left out'] : []
  return {
    text: () => (providers.length > 0 ? [providersTable(providers)] : noneText),
    json: { providers, problems },
    exitCode: problems.length === 0 ? exitCode.success : exitCode.negative,
  }
}

/** Prefers the message of the cause, which is more precise than the message of a failed `fetch` itself. */
function reasonText(reason: unknown): string {
  if (!(reason instanceof Error)) return String(reason)
  if (reason.name === 'TimeoutError') return 'it does not answer'
  const { cause } = reason
  return cause instanceof Error && cause.message !== '' ? cause.message : reason.message
}

function providersTable(providers: readonly ExplainedProvider[]): string {
  const rows = providers.map(({ proxy, backend, provider, reason, workers, times }) => [
    proxy,
    backend,
    provider,
    workers === 0 ? 'in use' : `left out by ${workers} ${workers === 1 ? 'worker' : 'workers'}`,
    reason,
    `${times} times`,
  ])
  return table([['PROXY', 'BACKEND', 'PROVIDER', 'NOW', 'REASON', 'SO FAR'], ...rows])
}

async function scrapeProxy(address: string): Promise<ExplainedProvider[]> {
  const signal = AbortSignal.timeout(timeoutMs)
  const response = await fetch(`http://${address}/metrics`, { signal })
  if (!response.ok) throw new Error(`it answers ${response.status}`)
  return readProviders(address, await response.text())
}

const metricLine = /^sluice_model_provider_(ejected|ejections_total)\{(.*)\} (\d+)$/gm
const labelPattern = /(\w+)="((?:[^"\\]|\\.)*)"/g
const escapes: Readonly<Record<string, string>> = { n: '\n' }

/** Parses the ejected providers out of a proxy's metrics. */
function readProviders(proxy: string, text: string): ExplainedProvider[] {
  const found = new Map<string, ExplainedProvider>()
  for (const [, metric, labels = '', value] of text.matchAll(metricLine)) {
    const read = Object.fromEntries(
      [...labels.matchAll(labelPattern)].map(([, key = '', quoted = '']) => [
        key,
        quoted.replace(/\\(.)/g, (_, escaped: string) => escapes[escaped] ?? escaped),
      ]),
    )
    const { backend = '', provider = '', reason = '' } = read
    const key = JSON.stringify([backend, provider, reason])
    const known = found.get(key) ?? { proxy, backend, provider, reason, workers: 0, times: 0 }
    const count = metric === 'ejected' ? { workers: Number(value) } : { times: Number(value) }
    found.set(key, { ...known, ...count })
  }
  return [...found.values()]
}
