/** Puts a defect into the code under test, to see that a simulation finds it. */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { compileTexts } from './mutated-core.ts'

const root = join(import.meta.dirname, '..', '..')

/** A text of one source file, and what stands there instead. Files of `assembly/` are compiled with it. */
export interface Mutation {
  readonly file: string
  readonly from: string
  readonly to: string
}

/** Changes a file when it is loaded. Call it before any import of the code under test. @throws Error */
export function mutate(mutations: Readonly<Record<string, Mutation>>, name: string): void {
  const mutation = mutations[name]
  if (mutation === undefined) throw new Error(`there is no mutation ${name}`)
  change(mutation.file.startsWith('assembly/') ? mutationOfHost(mutation) : mutation)
}

function change({ file, from, to }: Mutation): void {
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context)
      if (!url.endsWith(`/${file}`)) return loaded
      const source = replaced(String(loaded.source), { file, from, to })
      return { ...loaded, source }
    },
  })
}

/** Lets the host load a core with the defect. */
function mutationOfHost(mutation: Mutation): Mutation {
  const made = compileTexts(mutation.file, (source) => replaced(source, mutation))
  return { file: 'src/engines/core/load.ts', from: "'core-texts.wasm'", to: `'${made}'` }
}

function replaced(source: string, { file, from, to }: Mutation): string {
  if (!source.includes(from)) throw new Error(noLine(file, from))
  return source.replace(from, () => to)
}

const noLine = (file: string, from: string): string => `${file} has no line '${from}' any more`

/** Returns what is wrong with each mutation whose line is not in its file any more. */
export function staleMutations(mutations: Readonly<Record<string, Mutation>>): string[] {
  return Object.values(mutations).flatMap(({ file, from }) =>
    readFileSync(join(root, file), 'utf8').includes(from) ? [] : [noLine(file, from)],
  )
}
