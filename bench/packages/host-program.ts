/** Programs in other languages that measure candidates in their own process, on texts that this one writes. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { maskTexts, rules } from '../core/mask-peers.ts'
import { sliceTexts } from '../core/token-texts.ts'
import { type BenchContext, interleave, type Row } from '../harness.ts'

export const tokenKinds = ['english', 'code', 'chinese', 'emoji'] as const
export const maskKinds = ['prose', 'matches', 'digits', 'ats'] as const

/**
 * Writes the texts, and the patterns of the peers: each with its replacement, and with `true` if the last digit of a
 * match must check the others. The first slice of a text for tokens is for warming up.
 */
export function writeTexts(folder: string, { quick, rounds }: BenchContext): void {
  mkdirSync(folder, { recursive: true })
  const slices = sliceTexts(rounds + 2, quick ? 40_000 : 130_000)
  for (const kind of tokenKinds) {
    for (const [i, text] of slices[kind].entries()) {
      writeFileSync(join(folder, `tokens.${kind}.${i}`), text)
    }
  }
  for (const kind of maskKinds) writeFileSync(join(folder, `mask.${kind}`), maskTexts[kind])
  const names = ['<Ssn>', '<CreditCard>', '<PhoneNumber>', '<Email>', '<CaSin>']
  const patterns = rules.map(([pattern, replacement], i) => [
    pattern.source,
    names[i],
    typeof replacement !== 'string',
  ])
  writeFileSync(join(folder, 'rules.json'), JSON.stringify(patterns))
}

export interface HostProgram {
  /** The candidates that the program has; the others could not be installed. */
  readonly candidates: ReadonlySet<string>
  /** MB of UTF-8 in a second of the program's CPU time, and what the candidate counted. */
  measure(candidate: string, task: string): Promise<readonly [speed: number, count: number]>
  close(): void
}

/** Starts a program. It prints its candidates in one line; then it answers each line `CANDIDATE TASK` with a speed and a count. */
export async function startProgram(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<HostProgram> {
  const child: ChildProcess = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const failed = new Promise<never>((_, reject) => {
    child.on('error', reject)
    child.on('exit', (code) => reject(new Error(`${command} ended with ${code}`)))
  })
  failed.catch(() => undefined)
  if (child.stdout === null || child.stdin === null) throw new Error('no pipes')
  const { stdin } = child
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const read = async () => String((await Promise.race([lines.next(), failed])).value)
  const candidates = new Set((await read()).split(' '))
  return {
    candidates,
    async measure(candidate, task) {
      stdin.write(`${candidate} ${task}\n`)
      const [speed = Number.NaN, count = Number.NaN] = (await read()).split(' ').map(Number)
      if (!(speed > 0)) throw new Error(`${candidate} ${task}: no speed`)
      return [speed, count]
    },
    close: () => stdin.end(),
  }
}

/** Programs that have some of the candidates each, as one. */
export const joinPrograms = (programs: readonly HostProgram[]): HostProgram => ({
  candidates: new Set(programs.flatMap(({ candidates }) => [...candidates])),
  measure(candidate, task) {
    const program = programs.find(({ candidates }) => candidates.has(candidate))
    if (program === undefined) throw new Error(`${candidate} is absent`)
    return program.measure(candidate, task)
  },
  close() {
    for (const program of programs) program.close()
  },
})

interface Comparison {
  /** Beginning of the ids of the rows. */
  readonly id: string
  readonly tokenPeer: string
  readonly maskPeers: readonly string[]
  /** The candidate that a peer is compared with, if it is not `sluice`. */
  readonly ours?: Readonly<Record<string, string>>
}

/** A row for each kind of text and each peer; one without samples if the peer is absent. */
export async function compare(
  program: HostProgram,
  { id, tokenPeer, maskPeers, ours = {} }: Comparison,
  { rounds, note }: BenchContext,
): Promise<Row[]> {
  const known = (peer: string) => program.candidates.has(peer)
  for (const peer of [tokenPeer, ...maskPeers]) {
    if (!known(peer)) note(`${peer} is absent: it could not be installed`)
  }
  const rows: Row[] = []
  const add = (task: string, peer: string, own: readonly number[], samples: readonly number[]) =>
    rows.push({
      id: `${id}.${task}.${peer}`,
      unit: 'MB/s',
      own,
      peer: { name: peer, samples },
      as: 'speedup',
    })
  for (const kind of tokenKinds) {
    const names = ['sluice', tokenPeer].filter(known)
    const counts: Record<string, number[]> = {}
    const turns = names.map((name) => {
      let turn = 0
      return async () => {
        const [speed, count] = await program.measure(name, `tokens ${kind} ${++turn}`)
        counts[name] = [...(counts[name] ?? []), count]
        return speed
      }
    })
    const samples = await interleave(
      rounds,
      Object.fromEntries(names.map((name, i) => [name, turns[i] ?? (() => 0)])),
    )
    const [first, ...others] = Object.values(counts).map(String)
    if (others.some((other) => other !== first)) throw new Error(`${kind}: counts differ`)
    add(`tokens.${kind}`, tokenPeer, samples.sluice ?? [], samples[tokenPeer] ?? [])
  }
  for (const kind of maskKinds) {
    const names = ['sluice', ...Object.values(ours), ...maskPeers].filter(known)
    const samples = await interleave(
      rounds,
      Object.fromEntries(
        names.map((name) => [name, async () => (await program.measure(name, `mask ${kind} 0`))[0]]),
      ),
    )
    for (const peer of maskPeers) {
      add(`mask.${kind}`, peer, samples[ours[peer] ?? 'sluice'] ?? [], samples[peer] ?? [])
    }
  }
  return rows
}
