/** The command `npm run differential`: the same traffic through Sluice, nginx and Envoy. */
import { parseArgs } from 'node:util'
import { absenceOf, versionOf } from '../support/real-proxies.ts'
import type { Case } from './case.ts'
import { cases } from './cases/index.ts'
import {
  type Difference,
  differencesOf,
  type Explanation,
  explains,
  judge,
  readExplanations,
  rowOf,
} from './differences.ts'
import { type Observation, observe } from './observe.ts'
import { type Peer, peers, startPeer, startSluice, type TestedProxy } from './proxies.ts'

export const usage = `npm run differential -- [CASE…] [--without nginx|envoy] [--show]

Sends recorded traffic (test/differential/cases/) through Sluice and through nginx and Envoy that are
configured alike. Fails on a difference that docs/differences.md does not explain, and on a row there
that explains nothing.

  CASE            only cases whose names begin with one of these, such as paths/
  --without NAME  leaves a peer out
  --show          prints every part of every case, also the equal ones, and the public reports that inputs come from`

export interface Options {
  readonly prefixes: readonly string[]
  readonly peers: readonly Peer[]
  readonly isShown: boolean
}

/** @throws Error if an option is invalid or no case has the name */
export function parseOptions(args: readonly string[]): Options | 'help' {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      without: { type: 'string', multiple: true, default: [] },
      show: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return 'help'
  const unknown = values.without.find((name) => !peers.some((peer) => peer === name))
  if (unknown !== undefined) throw new Error(`--without takes ${peers.join(' or ')}`)
  const missing = positionals.find((prefix) => !cases.some(({ name }) => name.startsWith(prefix)))
  if (missing !== undefined) throw new Error(`no case begins with ${missing}`)
  const left = peers.filter((peer) => !values.without.includes(peer))
  return { prefixes: positionals, peers: left, isShown: values.show }
}

/** Differences of all cases; each case is sent to all proxies at the same time. */
export async function compareAll(
  chosen: readonly Case[],
  against: readonly Peer[],
  see: (name: string, proxy: string, parts: Observation) => void = () => {},
): Promise<Difference[]> {
  const own = await startSluice()
  const others: [Peer, TestedProxy][] = []
  try {
    for (const peer of against) others.push([peer, await startPeer[peer]()])
    const differences: Difference[] = []
    for (const one of chosen) {
      const ask = ({ http1, http2, server }: TestedProxy) =>
        observe(one, 'fields' in one ? http2 : http1, server)
      const [ours, ...theirs] = await Promise.all(
        [own, ...others.map(([, proxy]) => proxy)].map(ask),
      )
      if (ours === undefined) continue
      see(one.name, 'sluice', ours)
      for (const [at, [peer]] of others.entries()) {
        const parts = theirs[at]
        if (parts === undefined) continue
        see(one.name, peer, parts)
        differences.push(...differencesOf(one.name, ours, peer, parts))
      }
    }
    return differences
  } finally {
    await Promise.all([own.close(), ...others.map(([, proxy]) => proxy.close())])
  }
}

/** Runs the comparison and prints what is not explained. Returns the exit code. */
export async function runDifferential(
  { prefixes, peers: against, isShown }: Options,
  print: (text: string) => void,
): Promise<number> {
  const absences = against.flatMap((peer) => absenceOf(peer) ?? [])
  if (absences.length > 0) {
    for (const absence of absences) print(`${absence}, or leave it out with --without`)
    return 2
  }
  print(against.map((peer) => `${peer} ${versionOf(peer)}`).join(', '))
  const chosen = cases.filter(
    ({ name }) => prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix)),
  )
  const show = (name: string, proxy: string, parts: Observation) => {
    for (const [part, value] of parts) print(`${name}  ${proxy}  ${part}: ${value}`)
  }
  for (const { name, report: origin } of isShown ? chosen : []) {
    if (origin !== undefined) print(`${name}: the input of ${origin}`)
  }
  const differences = await compareAll(chosen, against, isShown ? show : undefined)
  const rows = readExplanations().filter(({ peer }) => against.includes(peer))
  const { unexplained, stale } = judge(differences, rows)
  // A row can only be called stale if everything was sent.
  const isWhole = prefixes.length === 0
  report(unexplained, isWhole ? stale : [], print)
  const explained = differences.length - unexplained.length
  const used = rows.filter((row) => differences.some((one) => explains(row, one)))
  print(
    `${chosen.length} cases, ${differences.length} differences: ${explained} explained by ${used.length} rows of docs/differences.md, ${unexplained.length} not explained`,
  )
  return unexplained.length > 0 || (isWhole && stale.length > 0) ? 1 : 0
}

function report(
  unexplained: readonly Difference[],
  stale: readonly Explanation[],
  print: (text: string) => void,
): void {
  if (unexplained.length > 0) {
    print('Not explained. Repair the gateway, or add these rows with a section and a reason:')
    for (const one of unexplained) print(rowOf(one))
  }
  for (const { line, name, peer, part } of stale) {
    print(`docs/differences.md:${line}: explains nothing any more: ${name}, ${peer}, ${part}`)
  }
}
