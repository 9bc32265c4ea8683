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
export const allSuites = [
  'heads',
  'chunks',
  'regex/cases',
  'regex/masks',
  'routes',
  'tokens/cases',
  'rate',
] as const

/** What packages run: they read no heads and no chunked bodies. */
export const packageSuites = [
  'regex/cases',
  'regex/masks',
  'routes',
  'tokens/cases',
  'rate',
] as const satisfies readonly (typeof allSuites)[number][]

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

/** Runs a host's program: it must have run every case of the suites, and none may have failed. */
export function expectAllPass(
  command: string,
  args: readonly string[],
  suites: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): void {
  const { stdout, stderr, error } = spawnSync(command, [...args, wasm, abi, cases], {
    encoding: 'utf8',
    env: { ...process.env, ...environment },
  })
  if (error !== undefined) throw error
  const last = stdout.trim().split('\n').at(-1) ?? ''
  if (!last.startsWith('{')) throw new Error(`no result: ${stdout}${stderr}`)
  expect(JSON.parse(last)).toEqual({ run: countsOf(suites), failures: [] })
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
