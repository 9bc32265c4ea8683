/**
 * The command `npm run data-plane-mutations`: seeds that find each mutation. `--record` searches for them; otherwise
 * it runs the recorded ones, since a search of all takes minutes.
 */
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { mutations } from './mutations.ts'

export const usage = `npm run data-plane-mutations -- [--record] [--processes N] [--mutation NAME]

  --record         writes seeds that find each mutation, the recorded ones if they still do, to ${'first-seeds.json'}
  --processes N    runs so many mutations at the same time (default 1)
  --mutation NAME  only this one`

interface Options {
  readonly records: boolean
  readonly processes: number
  readonly names: readonly string[]
}

type FirstSeeds = Readonly<Record<string, readonly number[]>>

const root = join(import.meta.dirname, '..', '..')
const file = join(import.meta.dirname, 'first-seeds.json')
/** Several would find a mutation also in other schedules, and take longer to search for. */
const seedsOfEach = 1
/** A mutation that no seed finds until here is rare: the tests leave it out. */
const lastSeed = 2_000
/** Seeds that are tried if a change of the code has made all recorded ones useless. */
const otherSeeds = '1..500'

/** @throws Error if an option is invalid */
export function parseOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      record: { type: 'boolean', default: false },
      processes: { type: 'string', default: '1' },
      mutation: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return 'help'
  const processes = Number(values.processes)
  if (!(processes > 0)) throw new Error('--processes takes a whole number above 0')
  const { mutation } = values
  if (mutation !== undefined && !Object.hasOwn(mutations, mutation)) {
    throw new Error(`there is no mutation ${mutation}`)
  }
  return {
    records: values.record,
    processes,
    names: mutation === undefined ? Object.keys(mutations) : [mutation],
  }
}

/** Returns the exit code: 1 if a mutation is not found that was found when its seeds were recorded, otherwise 0. */
export async function runMutations(
  { records, processes, names }: Options,
  print: (text: string) => void,
): Promise<number> {
  const known: FirstSeeds = JSON.parse(readFileSync(file, 'utf8'))
  const found = new Map<string, readonly number[]>()
  // A search has found no seed for some, which are rare.
  const rare = names.filter((name) => !records && known[name]?.length === 0)
  for (const name of rare) print(`no seed is known that finds that ${name}`)
  const tried = names.filter((name) => !rare.includes(name))
  const left = [...tried]
  const take = async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      const failed = records
        ? await record(name, known[name] ?? [])
        : await findAgain(name, known[name] ?? [], print)
      found.set(name, failed)
      print(`${failed.length > 0 ? `seed ${failed.join(', ')}` : 'NO seed'} finds that ${name}`)
    }
  }
  await Promise.all(Array.from({ length: processes }, take))
  const missing = tried.filter((name) => (found.get(name) ?? []).length === 0)
  if (records) {
    const all = { ...known, ...Object.fromEntries(found) }
    const kept = Object.keys(mutations).map((name) => [name, all[name] ?? []] as const)
    writeFileSync(file, `${JSON.stringify(Object.fromEntries(kept), undefined, 2)}\n`)
  } else if (missing.length > 0) {
    print('search for other seeds with: npm run data-plane-mutations -- --record --processes 2')
  }
  print(`${tried.length - missing.length} of ${tried.length} mutations are found`)
  return missing.length === 0 || records ? 0 : 1
}

/** Returns the recorded seeds of a mutation if one still finds it, otherwise the first that does. */
async function record(name: string, known: readonly number[]): Promise<readonly number[]> {
  const failed = known.length > 0 ? await failuresOf(name, known.join(), seedsOfEach) : []
  return failed.length > 0 ? failed : failuresOf(name, `1..${lastSeed}`, seedsOfEach)
}

/** Returns a seed that finds a mutation: a recorded one, if one still does. */
async function findAgain(name: string, known: readonly number[], print: (text: string) => void) {
  const failed = known.length > 0 ? await failuresOf(name, known.join(), 1) : []
  if (failed.length > 0) return failed
  print(`no recorded seed finds that ${name}; trying ${otherSeeds}`)
  return failuresOf(name, otherSeeds, 1)
}

/** Returns the first seeds that fail with a mutation. */
function failuresOf(name: string, seeds: string, most: number): Promise<number[]> {
  const script = join(root, 'scripts', 'data-plane-simulation.mjs')
  const flags = ['--disable-warning=ExperimentalWarning', '--disable-warning=DEP0111']
  const options = ['--seeds', seeds, '--mutation', name, '--until', String(most), '--no-build']
  const child = spawn(process.execPath, [...flags, script, ...options], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  return new Promise((resolve) =>
    child.on('close', () => {
      resolve([...output.matchAll(/^seed (\d+) FAILED/gm)].map(([, seed]) => Number(seed)))
    }),
  )
}
