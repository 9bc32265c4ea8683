/** The case files that every host runs, and what its program prints. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { root } from './files-server.ts'

export const cases = join(root, 'test', 'core')
export const wasm = join(root, 'dist', 'core.wasm')
export const abi = join(root, 'assembly', 'core.abi.json')

/** What every host runs. */
const allSuites = [
  'heads',
  'chunks',
  'regex/cases',
  'regex/masks',
  'routes',
  'tokens/cases',
  'rate',
] as const

/** What packages run: they read no heads and no chunked bodies. */
const packageSuites = [
  'regex/cases',
  'regex/masks',
  'routes',
  'tokens/cases',
  'rate',
  'limits',
  'texts/cases',
] as const

/** What the tests of each host run: the rows of the table of cases on docs/embedding.md. */
export const hostSuites = {
  '`@sluice/core` in Node': packageSuites,
  '`@sluice/core` in Chromium': packageSuites,
  '`@sluice/core` in workerd': packageSuites,
  '`@sluice/core` in Deno': packageSuites,
  '`@sluice/core` in Bun': packageSuites,
  '`sluice-core` in Python': packageSuites,
  '`sluice.dev/sluice` in Go': packageSuites,
  '`sluice-core` in Rust': packageSuites,
  '`sluice.h` in C': [...allSuites, 'texts/cases'],
  'the module in Node': allSuites,
  'the module in Chromium': allSuites,
  'the module in Python': allSuites,
  'the module in Go': allSuites,
  'the module in Rust': allSuites,
} as const satisfies Record<string, readonly string[]>

export type HostName = keyof typeof hostSuites

/** The heading of the table for each suite. */
const columns = {
  heads: 'heads',
  chunks: 'chunked bodies',
  'regex/cases': 'patterns',
  'regex/masks': 'masks',
  routes: 'routes',
  'tokens/cases': 'tokens',
  rate: 'rates',
  limits: 'limiters',
  'texts/cases': 'texts of models',
}

/** The table of docs/embedding.md: the cases that each host passes. */
export function tableOfHosts(): string {
  const suites = Object.keys(columns)
  const counts = countsOf(suites)
  const rows = Object.entries<readonly string[]>(hostSuites).map(([host, run]) => [
    host,
    ...suites.map((suite) => (run.includes(suite) ? `${counts[suite]}` : '–')),
  ])
  const head = ['host', ...Object.values(columns)]
  const rule = head.map((_, at) => (at === 0 ? '---' : '---:'))
  return [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |\n`).join('')
}

/** The parsed files of a suite. */
export function filesOf(suite: string): unknown[] {
  const folder = join(cases, suite)
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')))
}

/** How many cases the files of each suite hold. */
export function countsOf(suites: readonly string[]): Record<string, number> {
  const count = (file: unknown) =>
    (Array.isArray(file) ? file : (file as { cases: unknown[] }).cases).length
  return Object.fromEntries(
    suites.map((suite) => [
      suite,
      filesOf(suite).reduce((total: number, file) => total + count(file), 0),
    ]),
  )
}

/** Checks the result of a host: it must have run every case of its suites, and none may have failed. */
export function expectAllRun(host: HostName, result: unknown): void {
  expect(result).toEqual({ run: countsOf(hostSuites[host]), failures: [] })
}

/** Runs a host's program, which prints its result. */
export function expectAllPass(
  host: HostName,
  command: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): void {
  const { stdout, stderr, error } = spawnSync(command, [...args, wasm, abi, cases], {
    encoding: 'utf8',
    env: { ...process.env, ...environment },
  })
  if (error !== undefined) throw error
  const last = stdout.trim().split('\n').at(-1) ?? ''
  if (!last.startsWith('{')) throw new Error(`no result: ${stdout}${stderr}`)
  expectAllRun(host, JSON.parse(last))
}

/** Builds a host's program. Throws with what the compiler said. */
export function build(
  command: string,
  args: readonly string[],
  folder: string,
  environment: NodeJS.ProcessEnv,
): void {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, ...environment },
  })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stdout}${stderr}`)
}
