/** A real Prometheus server that scrapes one address every second. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './gateway.ts'
import { partPath } from './parts.ts'
import { startProgram } from './program.ts'
import { waitFor } from './wait-for.ts'

export interface QueryResult {
  readonly metric: Readonly<Record<string, string>>
  /** Time in seconds and value. */
  readonly value?: readonly [number, string]
}

export interface ExemplarResult {
  readonly exemplars: readonly {
    readonly labels: Readonly<Record<string, string>>
    readonly value: string
  }[]
}

export interface Prometheus {
  query(expression: string): Promise<readonly QueryResult[]>
  exemplars(selector: string): Promise<readonly ExemplarResult[]>
  /** The error of the last scrape; empty if it succeeded. */
  lastError(): Promise<string>
  remove(): Promise<void>
}

/** Needs the part `prometheus`. `features` are those of `--enable-feature`. */
export async function startPrometheus(target: string, features: string): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-prometheus-'))
  const port = await freePort()
  const { host, pathname } = new URL(target)
  const config = join(folder, 'prometheus.yml')
  writeFileSync(
    config,
    `global: { scrape_interval: 1s }
scrape_configs:
  - { job_name: sluice, metrics_path: ${pathname}, static_configs: [{ targets: ['${host}'] }] }
`,
  )
  const running = startProgram(
    partPath('prometheus'),
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      `--enable-feature=${features}`,
    ],
    join(folder, 'server.log'),
  )
  const ask = async <Data>(path: string, parameters: Record<string, string> = {}) => {
    const url = `http://127.0.0.1:${port}/api/v1/${path}?${new URLSearchParams(parameters)}`
    const answer = (await (await fetch(url)).json()) as { readonly data: Data }
    return answer.data
  }
  await waitFor('the Prometheus server', async () => {
    if (running.hasExited()) throw new Error(`Prometheus has ended: ${running.lastLines()}`)
    return (await fetch(`http://127.0.0.1:${port}/-/ready`).catch(() => undefined))?.ok
  })
  return {
    query: async (query) =>
      (await ask<{ readonly result: readonly QueryResult[] }>('query', { query })).result,
    exemplars: (query) => {
      const now = Date.now() / 1_000
      return ask('query_exemplars', { query, start: `${now - 600}`, end: `${now + 600}` })
    },
    async lastError() {
      type Targets = { readonly activeTargets: readonly { readonly lastError: string }[] }
      return (await ask<Targets>('targets')).activeTargets[0]?.lastError ?? 'no target'
    },
    async remove() {
      await running.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
