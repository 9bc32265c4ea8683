/**
 * `sluice explain providers`: which providers of language models running proxies leave out, and why.
 * That is nothing that the log knows: each proxy learns it from its own traffic, and tells it on its
 * stats address.
 */
import { exitCode, type Output, type OutputFormat, table, UsageError } from './output.ts'

export interface ProviderOptions {
  /** Stats addresses of proxies; that of a proxy on this machine where absent. */
  readonly stats?: readonly string[]
}

interface ExplainedProvider {
  /** Address of the proxy that tells. */
  readonly proxy: string
  /** `namespace/name` of the GatewayBackend. */
  readonly backend: string
  readonly provider: string
  /** `status 429`, or the code of an error. */
  readonly reason: string
  /** Workers of the proxy that leave it out now. */
  readonly workers: number
  /** How often that happened, for this reason, since the proxy started. */
  readonly times: number
}

const ownAddress = '127.0.0.1:15020'
const timeoutMs = 5_000

/** `name`: of a backend; all where absent. Exit code 1 where a proxy does not tell. */
export async function explainProviders(
  name: string | undefined,
  { stats = [ownAddress] }: ProviderOptions,
  format: OutputFormat,
  output: Output,
): Promise<number> {
  const backend = name === undefined || name.includes('/') ? name : `default/${name}`
  for (const address of stats) {
    if (!/^\S+:\d{1,5}$/.test(address)) throw new UsageError(`--stats ${address} is not HOST:PORT`)
  }
  const asked = await Promise.allSettled(stats.map((address) => askProxy(address)))
  const found = asked
    .flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
    .filter((one) => backend === undefined || one.backend === backend)
  const problems = asked.flatMap((one, at) =>
    one.status === 'rejected' ? [`${stats[at]}: ${reasonText(one.reason)}`] : [],
  )
  if (format === 'json') output.print(JSON.stringify({ providers: found, problems }, null, 2))
  else {
    for (const problem of problems) output.report(problem)
    if (found.length > 0) output.print(textOf(found))
    else if (problems.length < stats.length) output.print('no provider was left out')
  }
  return problems.length === 0 ? exitCode.fine : exitCode.no
}

/** What the network says stands below what `fetch` says. */
function reasonText(reason: unknown): string {
  if (!(reason instanceof Error)) return String(reason)
  if (reason.name === 'TimeoutError') return 'it does not answer'
  const { cause } = reason
  return cause instanceof Error && cause.message !== '' ? cause.message : reason.message
}

function textOf(found: readonly ExplainedProvider[]): string {
  const rows = found.map(({ proxy, backend, provider, reason, workers, times }) => [
    proxy,
    backend,
    provider,
    workers === 0 ? 'in use' : `left out by ${workers} ${workers === 1 ? 'worker' : 'workers'}`,
    reason,
    `${times} times`,
  ])
  return table([['PROXY', 'BACKEND', 'PROVIDER', 'NOW', 'REASON', 'SO FAR'], ...rows])
}

async function askProxy(address: string): Promise<ExplainedProvider[]> {
  const answer = await fetch(`http://${address}/metrics`, {
    signal: AbortSignal.timeout(timeoutMs),
  })
  if (!answer.ok) throw new Error(`it answers ${answer.status}`)
  return readProviders(address, await answer.text())
}

const line = /^sluice_model_provider_(ejected|ejections_total)\{(.*)\} (\d+)$/gm
const label = /(\w+)="((?:[^"\\]|\\.)*)"/g
const escapes: Readonly<Record<string, string>> = { n: '\n' }

/** From the text of a scrape. */
function readProviders(proxy: string, text: string): ExplainedProvider[] {
  const found = new Map<string, ExplainedProvider>()
  for (const [, metric, labels = '', value] of text.matchAll(line)) {
    const read = Object.fromEntries(
      [...labels.matchAll(label)].map(([, key = '', quoted = '']) => [
        key,
        quoted.replace(/\\(.)/g, (_, escaped: string) => escapes[escaped] ?? escaped),
      ]),
    )
    const { backend = '', provider = '', reason = '' } = read
    const key = JSON.stringify([backend, provider, reason])
    const known = found.get(key) ?? { proxy, backend, provider, reason, workers: 0, times: 0 }
    const told = metric === 'ejected' ? { workers: Number(value) } : { times: Number(value) }
    found.set(key, { ...known, ...told })
  }
  return [...found.values()]
}
