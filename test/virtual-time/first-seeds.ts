/**
 * The commands `npm run …-mutations`: seeds that find each mutation of a simulation. `--record` searches for them;
 * otherwise it runs the recorded ones, since a search of all takes minutes.
 */
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Mutation } from './mutate.ts'

interface Options {
  readonly records: boolean
  readonly processes: number
  /** Undefined: all. */
  readonly names: readonly string[] | undefined
}

/** A seed that finds a mutation, and the text of its failure. */
interface Find {
  readonly seed: number
  readonly failure: string
}

type FirstSeeds = Readonly<Record<string, readonly number[]>>

const root = join(import.meta.dirname, '..', '..')
/** A mutation that no seed finds until here is rare: it has an empty list, and is left out. */
const lastSeed = 2_000
/** Seeds that are tried if a change of the code has made the recorded ones useless. */
const otherSeeds = '1..500'

export const usageOf = (
  script: string,
): string => `npm run ${script} -- [--record] [--processes N] [--mutation NAME]

  --record         writes a seed that finds each mutation, the recorded one if it still does, to first-seeds.json
  --processes N    runs so many mutations at the same time (default 1)
  --mutation NAME  only this one; may be repeated`

/** @throws Error if an option is invalid */
export function parseOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      record: { type: 'boolean', default: false },
      processes: { type: 'string', default: '1' },
      mutation: { type: 'string', multiple: true },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return 'help'
  const processes = Number(values.processes)
  if (!(processes > 0)) throw new Error('--processes takes a whole number above 0')
  return { records: values.record, processes, names: values.mutation }
}

/** Runs the mutations of one simulation, which `folder` of `test/` has. */
export class MutationRun {
  readonly #folder: string
  readonly #mutations: Readonly<Record<string, Mutation>>
  readonly #file: string
  readonly #print: (text: string) => void

  constructor(
    folder: string,
    mutations: Readonly<Record<string, Mutation>>,
    print: (text: string) => void,
  ) {
    this.#folder = folder
    this.#mutations = mutations
    this.#file = join(root, 'test', folder, 'first-seeds.json')
    this.#print = print
  }

  /** Returns the exit code: 1 if a mutation with recorded seeds is not found, otherwise 0. @throws Error */
  async run({
    records,
    processes,
    names = Object.keys(this.#mutations),
  }: Options): Promise<number> {
    for (const name of names) {
      if (!Object.hasOwn(this.#mutations, name)) throw new Error(`there is no mutation ${name}`)
    }
    const known: FirstSeeds = JSON.parse(readFileSync(this.#file, 'utf8'))
    // A search has found no seed for some, which are rare.
    const rare = names.filter((name) => !records && known[name]?.length === 0)
    for (const name of rare) this.#print(`no seed is known that finds that ${name}`)
    const tried = names.filter((name) => !rare.includes(name))
    const found = new Map<string, readonly number[]>()
    const left = [...tried]
    const take = async () => {
      for (let name = left.shift(); name !== undefined; name = left.shift()) {
        const find = await this.#find(name, known[name] ?? [], records)
        found.set(name, find === undefined ? [] : [find.seed])
        const seed = find === undefined ? 'NO seed' : `seed ${find.seed}`
        this.#print(`${seed} finds that ${name}${find === undefined ? '' : ` (${find.failure})`}`)
      }
    }
    await Promise.all(Array.from({ length: processes }, take))
    const missing = tried.filter((name) => found.get(name)?.length === 0)
    if (records) this.#write({ ...known, ...Object.fromEntries(found) })
    else if (missing.length > 0) this.#print('search for other seeds with --record --processes 2')
    this.#print(`${tried.length - missing.length} of ${tried.length} mutations are found`)
    return missing.length === 0 || records ? 0 : 1
  }

  #write(all: FirstSeeds): void {
    const kept = Object.keys(this.#mutations).map((name) => [name, all[name] ?? []] as const)
    writeFileSync(this.#file, `${JSON.stringify(Object.fromEntries(kept), undefined, 2)}\n`)
  }

  /** Returns the first recorded seed that still finds a mutation, otherwise the first that does. */
  async #find(name: string, known: readonly number[], records: boolean): Promise<Find | undefined> {
    const found = known.length > 0 ? await this.#firstFailure(name, known.join()) : undefined
    if (found !== undefined) return found
    if (!records) this.#print(`no recorded seed finds that ${name}; trying ${otherSeeds}`)
    return this.#firstFailure(name, records ? `1..${lastSeed}` : otherSeeds)
  }

  #firstFailure(name: string, seeds: string): Promise<Find | undefined> {
    const script = join(root, 'scripts', `${this.#folder}.mjs`)
    const flags = ['--disable-warning=ExperimentalWarning', '--disable-warning=DEP0111']
    const options = ['--seeds', seeds, '--mutation', name, '--no-build']
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
        const [, seed, failure = ''] = /^seed (\d+) FAILED: (.*)$/m.exec(output) ?? []
        resolve(seed === undefined ? undefined : { seed: Number(seed), failure })
      }),
    )
  }
}
