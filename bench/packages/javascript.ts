/**
 * Claims: the npm package @sluice/core, as it is installed, counts tokens of new texts at least eight times as fast
 * as the npm package `tiktoken` in English, five times in code and Chinese and four times in emoji, and masks prose
 * at least ten times as fast as RegExp. Without Node's Buffer, a streamed delta costs at most twice what it costs in
 * `sluice/core`. The package is ready to mask, and to count, in less CPU time than its peers are to count.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type * as SluiceCore from '../../packages/javascript/src/index.ts'
import { packJavaScript } from '../../scripts/packages/javascript.mjs'
import { compileMask } from '../../src/engines/core/index.ts'
import { maskTexts, rateOf, sentence, throughRegExp } from '../core/mask-peers.ts'
import { tokenRows } from '../core/token-speed.ts'
import { type BenchContext, cpuNanoseconds, interleave, type Row } from '../harness.ts'

const builtins = ['Ssn', 'CreditCard', 'PhoneNumber', 'Email', 'CaSin'] as const

/** Unpacks the tarball. Returns the path of the module. */
async function install(folder: string): Promise<string> {
  const { name, bytes } = await packJavaScript({ version: '0.0.0' })
  writeFileSync(join(folder, name), bytes)
  const { status, stderr } = spawnSync('tar', ['-xzf', name], { cwd: folder, encoding: 'utf8' })
  if (status !== 0) throw new Error(`tar: ${stderr}`)
  return join(folder, 'package', 'index.js')
}

async function tokens({ TokenCounter }: typeof SluiceCore, rounds: number, size: number) {
  const counter = await TokenCounter.load('gpt-4o')
  return tokenRows({
    id: 'packages.javascript.tokens',
    own: (text) => counter.count(text),
    rounds,
    size,
    bounds: { english: 8, code: 5, chinese: 5, emoji: 4 },
  })
}

async function masks({ Mask, MaskStream }: typeof SluiceCore, rounds: number, quick: boolean) {
  const mask = new Mask(builtins.map((builtin) => ({ builtin })))
  const times = quick ? 20 : 100
  const rows: Row[] = []
  for (const kind of ['prose', 'matches', 'digits', 'ats'] as const) {
    const samples = await interleave(rounds, {
      own: () => rateOf((text) => mask.apply(text), maskTexts[kind], times),
      RegExp: () => rateOf(throughRegExp, maskTexts[kind], times / 10),
    })
    rows.push({
      id: `packages.javascript.mask.${kind}`,
      unit: 'MB/s',
      own: samples.own,
      peer: { name: 'RegExp', samples: samples.RegExp },
      as: 'speedup',
      ...(kind === 'prose' && { bound: { atLeast: 10 } }),
    })
  }
  const compiled = compileMask(builtins.map((builtin) => ({ builtin, replacement: '<x>' })))
  if (!compiled.ok) throw new Error(compiled.message)
  const cost = (stream: { push(text: string): string }) => () => {
    const spent = cpuNanoseconds(() => {
      for (let i = 0; i < 20_000; i++) stream.push(sentence.slice(0, 64))
    })
    return spent / 20_000
  }
  const deltas = await interleave(rounds, {
    own: cost(new MaskStream(mask)),
    core: cost(compiled.mask.stream()),
  })
  rows.push({
    id: 'packages.javascript.mask.delta',
    unit: 'ns',
    own: deltas.own,
    peer: { name: 'sluice/core', samples: deltas.core },
    as: 'cost',
    bound: { atMost: 2 },
  })
  return rows
}

/** Milliseconds of CPU time from the import to the first result, in a new process. */
function startOf(program: string): () => number {
  const timed = `const begun = process.cpuUsage(); ${program};
    const { user, system } = process.cpuUsage(begun); console.log((user + system) / 1000)`
  return () => {
    const args = ['--input-type=module', '-e', timed]
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    if (status !== 0) throw new Error(stderr)
    return Number(stdout)
  }
}

async function starts(module: string, rounds: number): Promise<Row[]> {
  const text = "'hello world'"
  const samples = await interleave(rounds, {
    mask: startOf(`const { Mask } = await import('${module}'); new Mask(['a+']).apply(${text})`),
    tokens: startOf(
      `const { countTokens } = await import('${module}'); await countTokens(${text})`,
    ),
    tiktoken: startOf(
      `const { get_encoding } = await import('tiktoken'); get_encoding('o200k_base').encode(${text})`,
    ),
    'gpt-tokenizer': startOf(
      `const { countTokens } = await import('gpt-tokenizer/encoding/o200k_base'); countTokens(${text})`,
    ),
  })
  const row = (id: 'mask' | 'tokens', peer: 'tiktoken' | 'gpt-tokenizer'): Row => ({
    id: `packages.javascript.start.${id}.${peer}`,
    unit: 'ms',
    own: samples[id],
    peer: { name: `${peer}, to the first count`, samples: samples[peer] },
    as: 'cost',
    bound: { atMost: 1 },
  })
  return [row('mask', 'gpt-tokenizer'), row('tokens', 'tiktoken'), row('tokens', 'gpt-tokenizer')]
}

export default async function javascript({ quick, rounds }: BenchContext): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-javascript-'))
  try {
    const module = await install(folder)
    const core: typeof SluiceCore = await import(module)
    return [
      ...(await tokens(core, rounds, quick ? 40_000 : 130_000)),
      ...(await masks(core, rounds, quick)),
      ...(await starts(module, rounds)),
    ]
  } finally {
    rmSync(folder, { recursive: true })
  }
}
