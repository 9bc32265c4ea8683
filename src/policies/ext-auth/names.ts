/** Names of headers that go to an authorization service or come from it. */
import { isFieldName } from '../../model/header-changes.ts'
import type { PolicyProblem } from '../define.ts'

/** What frames a message is written by whoever sends it. */
const framing = new Set(['connection', 'content-length', 'transfer-encoding', 'upgrade', 'expect'])

/** What is wrong with a list of names that are to be passed on; `path` is that of the list. */
export function nameProblems(path: string, names: readonly string[] = []): PolicyProblem[] {
  return names.flatMap((name, at) => {
    const message = nameProblem(name)
    return message === undefined ? [] : [{ path: `${path}[${at}]`, message }]
  })
}

/** Undefined where nothing is wrong. */
export function nameProblem(name: string): string | undefined {
  if (!isFieldName(name)) return 'is not an HTTP field name'
  if (!framing.has(name.toLowerCase())) return undefined
  return `${name} is not passed on: it belongs to one connection`
}

/** Lower case, each once. */
export function lowerNames(names: readonly string[] = []): string[] {
  return [...new Set(names.map((name) => name.toLowerCase()))]
}
