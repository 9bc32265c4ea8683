/** Updates `Mcp-Param-*` headers, which repeat arguments, if a guard or a processor has changed the arguments. */
import type { HeaderFields } from '../../../../../ground/exchange/exchange.ts'
import { decodeName, encodeName } from '../../eras/headers.ts'
import { jsonValue, member } from '../../json/node.ts'
import type { McpRequest } from '../../message.ts'
import type { HeaderChanges } from '../../policy/processor.ts'

const prefix = 'mcp-param-'

/** A scalar argument, with its path as JSON. */
interface Leaf {
  readonly path: string
  /** Name of the innermost property. */
  readonly name: string
  readonly text: string
}

/**
 * Returns the changes after which the headers repeat the arguments of `after`; undefined if there are none. The
 * gateway does not know which argument a header repeats, so it looks for the value of the header in `before`. A header
 * is removed if its argument is gone, or if several arguments match.
 */
export function repeatedArguments(
  headers: HeaderFields,
  before: McpRequest,
  after: McpRequest,
): HeaderChanges | undefined {
  if (after === before) return undefined
  const repeated = [...headers.entries()].filter(([name]) => name.toLowerCase().startsWith(prefix))
  if (repeated.length === 0) return undefined
  const [old, leaves] = [leavesOf(before), leavesOf(after)]
  const now = new Map(leaves.map(({ path, text }) => [path, text]))
  const isSame = old.length === now.size && old.every(({ path, text }) => now.get(path) === text)
  if (isSame) return undefined
  const set: [string, string][] = []
  const remove: string[] = []
  for (const [name, value] of repeated) {
    const next = nextValue(name.slice(prefix.length), decodeName(value), old, now)
    if (next === undefined) remove.push(name)
    else set.push([name, encodeName(next)])
  }
  return { set, remove }
}

const plain = (name: string): string => name.toLowerCase().replaceAll(/[-_]/g, '')

function nextValue(
  name: string,
  value: string | undefined,
  old: readonly Leaf[],
  now: ReadonlyMap<string, string>,
): string | undefined {
  const equal = old.filter(({ text }) => text === value)
  const named = equal.filter((one) => plain(one.name) === plain(name))
  const texts = new Set((named.length > 0 ? named : equal).map(({ path }) => now.get(path)))
  const [next] = texts
  return texts.size === 1 ? next : undefined
}

function leavesOf({ text, params }: McpRequest): readonly Leaf[] {
  const node = member(params, 'arguments')
  const leaves: Leaf[] = []
  if (node !== undefined) addLeaves(jsonValue(text, node), [], leaves)
  return leaves
}

function addLeaves(value: unknown, path: readonly string[], leaves: Leaf[]): void {
  if (typeof value === 'object' && value !== null) {
    for (const [key, one] of Object.entries(value)) addLeaves(one, [...path, key], leaves)
  } else {
    leaves.push({ path: JSON.stringify(path), name: path.at(-1) ?? '', text: String(value) })
  }
}
