import { isFieldName } from '../../../ground/model/header-changes.ts'
import type { PolicyProblem } from '../define.ts'

/** Fields that frame a message; only the sender of a message may set them. */
const framing = new Set(['connection', 'content-length', 'transfer-encoding', 'upgrade', 'expect'])

/** Problems in a list of header names to forward; `path` is the path of the list. */
export function nameProblems(path: string, names: readonly string[] = []): PolicyProblem[] {
  return names.flatMap((name, at) => {
    const message = nameProblem(name)
    return message === undefined ? [] : [{ path: `${path}[${at}]`, message }]
  })
}

/** Why a header cannot be forwarded; undefined if it can. */
export function nameProblem(name: string): string | undefined {
  if (!isFieldName(name)) return 'is not an HTTP field name'
  if (!framing.has(name.toLowerCase())) return undefined
  return `${name} is not passed on: it belongs to one connection`
}

/** Converts the names to lower case and removes duplicates. */
export function lowerNames(names: readonly string[] = []): string[] {
  return [...new Set(names.map((name) => name.toLowerCase()))]
}
