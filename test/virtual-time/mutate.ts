/** Puts a defect into the code under test, to see that a simulation finds it. */
import { registerHooks } from 'node:module'

/** A text of one source file, and what stands there instead. */
export interface Mutation {
  readonly file: string
  readonly from: string
  readonly to: string
}

/** Changes a file when it is loaded. Call it before any import of the code under test. @throws Error */
export function mutate(mutations: Readonly<Record<string, Mutation>>, name: string): void {
  const mutation = mutations[name]
  if (mutation === undefined) throw new Error(`there is no mutation ${name}`)
  const { file, from, to } = mutation
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context)
      if (!url.endsWith(`/${file}`)) return loaded
      const source = String(loaded.source)
      if (!source.includes(from)) throw new Error(`${file} has no line '${from}' any more`)
      return { ...loaded, source: source.replace(from, to) }
    },
  })
}
