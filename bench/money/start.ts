/**
 * Claim: the time of a lookup does not depend on how many budgets and keys there are. Also measured: start until
 * `ready`, CPU time until then, and resident memory with 10,000 budgets, and with 100,000 keys.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ApiKeys } from '../../src/gateway/policies/api-key-authentication/keys.ts'
import { freePort } from '../../test/support/gateway.ts'
import {
  budget,
  gateway,
  httpRoute,
  manifest,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../../test/support/manifests.ts'
import {
  type BenchContext,
  cpuNanoseconds,
  interleave,
  launcher,
  milliseconds,
  type Row,
} from '../harness.ts'
import { type MeasuredProxy, startProxyProcess } from '../proxy/process.ts'

const megabyte = 1024 * 1024

const keyText = (number: number): string => `sk-bench-${number}`
const keyHash = (number: number): string =>
  `sha256:${createHash('sha256').update(keyText(number)).digest('hex')}`
const keyEntry = (number: number): string =>
  JSON.stringify({ keyHash: keyHash(number), metadata: { team: `team-${number % 100}` } })

type Objects = Readonly<Record<string, unknown>>[]

/** Routes with ten budgets each. */
function withBudgets(port: number, count: number): Objects {
  const routes = Math.ceil(count / 10)
  const limit = { unit: 'USD', amount: '100' }
  const window = { unit: 'Month', timeZone: 'Europe/Berlin' }
  return [
    gateway(port),
    staticBackend('main', 1),
    ...Array.from({ length: routes }, (_, number) =>
      httpRoute(`route-${number}`, {
        hostnames: [`route-${number}.example.com`],
        rules: [{ backendRefs: [toBackend('main')] }],
      }),
    ),
    ...Array.from({ length: count }, (_, number) =>
      budget(`budget-${number}`, `HTTPRoute/route-${number % routes}`, { limit, window }),
    ),
  ]
}

/** One route whose keys are in Secrets of a thousand. */
function withKeys(port: number, count: number): Objects {
  const secrets = Array.from({ length: Math.ceil(count / 1_000) }, (_, part) => {
    const entries = Array.from({ length: Math.min(1_000, count) }, (_, at) => {
      const number = part * 1_000 + at
      return [`key-${number}`, keyEntry(number)]
    })
    return secret(`keys-${part}`, Object.fromEntries(entries), { keys: 'yes' })
  })
  return [
    gateway(port),
    staticBackend('main', 1),
    httpRoute('keys', { rules: [{ backendRefs: [toBackend('main')] }] }),
    policy('keys', 'HTTPRoute/keys', {
      traffic: { apiKeyAuthentication: { secretSelector: { matchLabels: { keys: 'yes' } } } },
    }),
    ...secrets,
  ]
}

async function startOnce(objects: (port: number) => Objects) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  let proxy: MeasuredProxy | undefined
  try {
    const port = await freePort()
    const manifests = join(folder, 'manifests')
    mkdirSync(manifests)
    for (const [at, part] of partsOf(objects(port)).entries()) {
      writeFileSync(join(manifests, `part-${at}.yaml`), manifest(...part))
    }
    const addresses = ['--stats-address', '127.0.0.1:0', '--readiness-address', '127.0.0.1:0']
    const options = ['--ephemeral', '--workers', '1', '--admin-address', 'off', ...addresses]
    const command = [launcher, 'run', '-f', manifests, '--bind-address', '127.0.0.1', ...options]
    const ms = await milliseconds(async () => {
      proxy = await startProxyProcess({ name: 'sluice', version: '', port, command })
    })
    const cpu = (proxy?.cpuTime() ?? 0) / 1e9
    return { ms, cpu, memory: (proxy?.residentBytes() ?? 0) / megabyte }
  } finally {
    await proxy?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Files of 500 objects. */
function partsOf(objects: Objects): Objects[] {
  const count = Math.ceil(objects.length / 500)
  return Array.from({ length: count }, (_, part) => objects.slice(part * 500, part * 500 + 500))
}

/** Microseconds to find a key by what a client sends, its digest included. */
function lookups(keys: ApiKeys, count: number, asks: number): number {
  const sent = Array.from({ length: count }, (_, number) => keyText(number))
  const spent = cpuNanoseconds(() => {
    for (let number = 0; number < asks; number++) {
      if (keys.find(sent[(number * 7919) % count] ?? '') === undefined) throw new Error('no key')
    }
  })
  return spent / asks / 1_000
}

async function lookupRow({ rounds, quick }: BenchContext): Promise<Row> {
  const keysOf = (count: number) =>
    new ApiKeys(
      Array.from({ length: count }, (_, number) => ({
        name: `key-${number}`,
        text: keyEntry(number),
      })),
    )
  const [few, many] = [1_000, 100_000]
  const [fewKeys, manyKeys] = [keysOf(few), keysOf(many)]
  const asks = quick ? 100_000 : 400_000
  const samples = await interleave(rounds, {
    few: () => lookups(fewKeys, few, asks),
    many: () => lookups(manyKeys, many, asks),
  })
  return {
    id: 'money.key-lookup.100000-keys',
    unit: 'µs',
    own: samples.many,
    peer: { name: 'of 1,000 keys', samples: samples.few },
    bound: { atMost: 2 },
    note: 'keys in no order; more keys fit caches less',
  }
}

export default async function start(context: BenchContext): Promise<Row[]> {
  const { quick, note } = context
  const [budgets, keys] = quick ? [1_000, 10_000] : [10_000, 100_000]
  const scenes = {
    [`${budgets / 10}-routes`]: (port: number) => withBudgets(port, budgets).filter(isNoBudget),
    [`${budgets}-budgets`]: (port: number) => withBudgets(port, budgets),
    [`${keys}-keys`]: (port: number) => withKeys(port, keys),
  }
  const rows: Row[] = [await lookupRow(context)]
  for (const [name, objects] of Object.entries(scenes)) {
    const runs = []
    for (let round = 0; round < (quick ? 1 : 3); round++) runs.push(await startOnce(objects))
    note(name)
    rows.push(
      { id: `money.start.${name}`, unit: 'ms', own: runs.map(({ ms }) => ms) },
      { id: `money.start.cpu.${name}`, unit: 's', own: runs.map(({ cpu }) => cpu) },
      { id: `money.resident.${name}`, unit: 'MB', own: runs.map(({ memory }) => memory) },
    )
  }
  return rows
}

const isNoBudget = ({ kind }: Readonly<Record<string, unknown>>): boolean =>
  kind !== 'GatewayBudget'
